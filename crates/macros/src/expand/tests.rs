//! Error messages of refused input. Accepted input is tested where it can run:
//! `crates/tools/tests/it/tool_macro.rs`.

use expect_test::{Expect, expect};
use quote::quote;

use super::*;

#[expect(
    clippy::needless_pass_by_value,
    reason = "an `expect!` is written in place"
)]
fn refuses(options: TokenStream, function: TokenStream, message: Expect) {
    let error = tool(options, function).expect_err("a compile error");
    message.assert_eq(&error.to_string());
}

#[test]
fn no_description() {
    refuses(
        quote!(),
        quote!(
            async fn weather(city: String) -> String {
                city
            }
        ),
        expect![[
            r#"`weather` needs a description, because the model chooses by it: write a doc comment (`/// ...`), or #[tool(description = "...")]"#
        ]],
    );
    refuses(
        quote!(),
        quote!(
            ///
            #[doc(hidden)]
            async fn weather() {}
        ),
        expect![[
            r#"`weather` needs a description, because the model chooses by it: write a doc comment (`/// ...`), or #[tool(description = "...")]"#
        ]],
    );
    refuses(
        quote!(description = "  "),
        quote!(
            async fn weather() {}
        ),
        expect!["the description is blank: the model chooses by it"],
    );
}

#[test]
fn not_an_async_function() {
    refuses(
        quote!(),
        quote!(
            #[doc = "W."]
            fn weather() {}
        ),
        expect!["a tool is an `async fn`: write `async` in front of `fn`"],
    );
    refuses(
        quote!(),
        quote!(
            struct Weather;
        ),
        expect!["`#[tool]` goes on an `async fn` outside of any `impl`"],
    );
    refuses(
        quote!(),
        quote!(
            #[doc = "W."]
            async fn weather(&self) {}
        ),
        expect![
            "a tool is a free function: what it needs besides its arguments goes into a static, or use `FunctionTool`, whose closure can hold it"
        ],
    );
    refuses(
        quote!(),
        quote!(
            #[doc = "W."]
            async fn weather<T>(city: T) {}
        ),
        expect!["a tool cannot be generic: its arguments have one JSON Schema"],
    );
}

#[test]
fn parameters_that_cannot_be_arguments() {
    let refuses = |parameter: TokenStream, message| {
        refuses(
            quote!(),
            quote!(#[doc = "W."] async fn weather(#parameter) {}),
            message,
        );
    };
    refuses(
        quote!(city: &str),
        expect!["a tool owns its arguments: write `String` here"],
    );
    refuses(
        quote!(cities: &[String]),
        expect!["a tool owns its arguments: write a `Vec` here"],
    );
    refuses(
        quote!(city: &City),
        expect!["a tool owns its arguments: write the type without `&` here"],
    );
    refuses(
        quote!(city: impl Into<String>),
        expect!["a tool's argument needs a type with a name"],
    );
    refuses(
        quote!((a, b): (u8, u8)),
        expect!["give this parameter a name: it is what the model fills in"],
    );
    refuses(
        quote!(city: String, context: &ToolContext),
        expect!["the context comes first"],
    );
    refuses(
        quote!(context: &mut ToolContext),
        expect!["a tool owns its arguments: write `&ToolContext` here"],
    );
    refuses(
        quote!(#[arg(name = "town")] city: String),
        expect![[r#"there is only `#[arg(description = "...")]`"#]],
    );
}

#[test]
fn options() {
    let refuses = |options: TokenStream, message| {
        refuses(
            options,
            quote!(
                #[doc = "W."]
                async fn weather() {}
            ),
            message,
        );
    };
    refuses(
        quote!(readonly),
        expect![[
            r#"there is no option `readonly`; there are read_only, destructive, idempotent, keyed, parallel, closed_world, name = "...", description = "...", timeout_secs = N, describe = path, crate = path"#
        ]],
    );
    refuses(
        quote!(read_only, destructive),
        expect![
            "a `read_only` tool changes nothing, so it cannot be `destructive`: keep one of them"
        ],
    );
    refuses(
        quote!(parallel, parallel),
        expect!["`parallel` is given twice"],
    );
    refuses(
        quote!(name = weather),
        expect![[r#"`name` is text: name = "...""#]],
    );
    refuses(
        quote!(name = "Weather report"),
        expect![[
            r#""Weather report" cannot be a tool's name: lower-case letters, digits and _ only, not starting with a digit, 1 to 64 characters. Give it one: #[tool(name = "...")]"#
        ]],
    );
    refuses(
        quote!(timeout_secs = 0),
        expect!["a tool needs at least one second"],
    );
    refuses(
        quote!(timeout_secs = "3"),
        expect!["expected integer literal"],
    );
    refuses(quote!(read_only destructive), expect!["expected `,`"]);
}

#[test]
fn a_function_name_that_is_no_tool_name() {
    refuses(
        quote!(),
        quote!(
            #[doc = "W."]
            async fn getWeather() {}
        ),
        expect![[
            r#""getWeather" cannot be a tool's name: lower-case letters, digits and _ only, not starting with a digit, 1 to 64 characters. Give it one: #[tool(name = "...")]"#
        ]],
    );
    assert!(
        tool(
            quote!(name = "get_weather"),
            quote!(
                #[doc = "W."]
                async fn getWeather() {}
            )
        )
        .is_ok()
    );
}

/// Its error may be `Serialize` and nothing else; then it must not compile rather than succeed.
#[test]
fn a_result_is_never_a_plain_value() {
    let expansion = |output| {
        tool(
            quote!(),
            quote!(#[doc = "W."] async fn weather() -> #output {}),
        )
        .unwrap()
        .to_string()
    };
    assert!(expansion(quote!(String)).contains("ValueKind"));
    assert!(!expansion(quote!(Result<String, Problem>)).contains("ValueKind"));
    assert!(!expansion(quote!(std::io::Result<String>)).contains("ValueKind"));
}

#[test]
fn paths_go_through_the_facade() {
    let expansion = |options| {
        tool(
            options,
            quote!(
                #[doc = "W."]
                async fn weather() {}
            ),
        )
        .unwrap()
        .to_string()
    };
    assert!(expansion(quote!()).contains(":: adjutant :: __private :: adjutant_core :: Tool"));
    let elsewhere = expansion(quote!(crate = my::agents));
    assert!(elsewhere.contains("my :: agents :: __private :: adjutant_core :: Tool"));
    assert!(!elsewhere.contains(":: adjutant ::"));
}

#[test]
fn paragraphs_of_a_doc_comment() {
    let function: ItemFn = parse_quote! {
        /// One
        /// two.
        ///
        ///
        /// Three.
        async fn weather() {}
    };
    assert_eq!(
        docs::description(&function.attrs).as_deref(),
        Some("One two.\n\nThree.")
    );
}
