//! Expands an annotated function to a unit struct of the same name that implements `Tool`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Error, ItemFn, LitStr, Path, Result, ReturnType, Type, parse_quote};

use crate::options::{Options, tool_name};
use crate::parameter::{Argument, Context};
use crate::{docs, parameter};

/// Expands `#[tool(options)] function`.
///
/// # Errors
/// A compile error at the span of the mistake, which says what to write instead.
pub(crate) fn tool(options: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let options = Options::parse(options)?;
    let mut function = parse_function(function)?;
    let (context, arguments) = parameter::parse(&mut function.sig)?;
    let name = tool_name(&options, &function.sig.ident)?;
    let description = description(&options, &function)?;

    let facade = options
        .facade
        .clone()
        .unwrap_or_else(|| parse_quote!(::adjutant));
    let private = quote!(#facade::__private);
    let tool = function.sig.ident.clone();
    let visibility = &function.vis;
    // A `cfg` on the function must also apply to the generated items.
    let (switches, others): (Vec<_>, Vec<_>) = std::mem::take(&mut function.attrs)
        .into_iter()
        .partition(|attribute| attribute.path().is_ident("cfg"));
    let (doc_comments, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|attribute| attribute.path().is_ident("doc"));
    let doc_comments = if doc_comments.is_empty() {
        vec![parse_quote!(#[doc = #description])]
    } else {
        doc_comments
    };

    // The name of the function becomes that of the type, which cannot share it.
    function.sig.ident = format_ident!("run", span = tool.span());
    let signature = &function.sig;
    let body = &function.block;
    let annotations = options.annotations(&private);
    let definition =
        quote!(#private::definition::<__ToolArguments>(#name, #description, #annotations));
    let implementation = implementation(
        &options,
        &private,
        &function,
        &tool,
        &definition,
        context,
        &arguments,
    );
    let fields = arguments.iter().map(|argument| &argument.field);
    let serde = path_text(&facade, "serde");
    let schemars = path_text(&facade, "schemars");
    // `allow` and not `expect` in what is generated, here and below: whether there is anything to
    // silence depends on the user's function, and an unfulfilled `expect` would warn in their code.
    Ok(quote! {
        #(#switches)*
        #(#doc_comments)*
        #[allow(non_camel_case_types, reason = "a tool has the name of its function")]
        #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
        #visibility struct #tool;

        #(#switches)*
        impl #tool {
            #(#doc_comments)*
            #(#others)*
            #visibility #signature #body
        }

        #(#switches)*
        const _: () = {
            #[derive(#private::serde::Deserialize, #private::schemars::JsonSchema)]
            #[serde(crate = #serde, deny_unknown_fields)]
            #[schemars(crate = #schemars)]
            struct __ToolArguments {
                #(#fields,)*
            }

            #implementation
        };
    })
}

fn parse_function(tokens: TokenStream) -> Result<ItemFn> {
    // The parser would point at the first token that does not fit, and not say what the attribute
    // is for.
    let function: ItemFn = syn::parse2(tokens.clone()).map_err(|_| {
        Error::new_spanned(
            tokens,
            "`#[tool]` goes on an `async fn` outside of any `impl`",
        )
    })?;
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        return Err(Error::new(
            signature.fn_token.span,
            "a tool is an `async fn`: write `async` in front of `fn`",
        ));
    }
    if !signature.generics.params.is_empty() {
        let message = "a tool cannot be generic: its arguments have one JSON Schema";
        return Err(Error::new_spanned(&signature.generics, message));
    }
    if let Some(variadic) = &signature.variadic {
        return Err(Error::new_spanned(
            variadic,
            "a tool takes a fixed list of arguments",
        ));
    }
    Ok(function)
}

fn description(options: &Options, function: &ItemFn) -> Result<String> {
    options.description.as_ref().map(LitStr::value).or_else(|| docs::description(&function.attrs)).ok_or_else(|| {
        let name = &function.sig.ident;
        let message = format!(
            "`{name}` needs a description, because the model chooses by it: write a doc comment (`/// ...`), or \
             #[tool(description = \"...\")]"
        );
        Error::new(name.span(), message)
    })
}

fn implementation(
    options: &Options,
    private: &TokenStream,
    function: &ItemFn,
    tool: &syn::Ident,
    definition: &TokenStream,
    context: Context,
    arguments: &[Argument],
) -> TokenStream {
    let core = quote!(#private::adjutant_core);
    let timeout = options.timeout_secs.map(|seconds| {
        quote! {
            fn timeout(&self) -> ::core::option::Option<::core::time::Duration> {
                ::core::option::Option::Some(::core::time::Duration::from_secs(#seconds))
            }
        }
    });
    let describe = options.describe.as_ref().map(|describe| {
        quote_spanned! {describe.span()=>
            fn describe(
                &self,
                __arguments: &#core::Arguments,
                __data: &#private::Value,
            ) -> ::core::option::Option<::std::string::String> {
                ::core::option::Option::Some(#describe(__arguments, __data))
            }
        }
    });
    let context = match context {
        Context::None => None,
        Context::Borrowed => Some(quote!(__context,)),
        Context::Owned => Some(quote!(::core::clone::Clone::clone(__context),)),
    };
    let names = arguments.iter().map(|argument| &argument.name);
    // The span is the return type's, so that "Serialize is not implemented" points at it.
    let (returns, result) = match &function.sig.output {
        ReturnType::Type(_, ty) => (ty.span(), is_result(ty)),
        ReturnType::Default => (tool.span(), false),
    };
    // `Result` implements `Serialize` too: without this, an `Err` would be serialized as a success.
    let plain_value = (!result).then(|| {
        quote! {
            #[allow(unused_imports, reason = "which of them is used depends on what the function returns")]
            use #private::ValueKind as _;
        }
    });
    let finish =
        quote_spanned!(returns=> (&&&#private::Kind::of(&__returned)).kind().finish(__returned));
    quote! {
        #[automatically_derived]
        impl #core::Tool for #tool {
            fn definition(&self) -> &#core::ToolDefinition {
                static DEFINITION: ::std::sync::OnceLock<#core::ToolDefinition> = ::std::sync::OnceLock::new();
                DEFINITION.get_or_init(|| #definition)
            }

            fn call<'a>(
                &'a self,
                __context: &'a #core::ToolContext,
                __arguments: #core::Arguments,
            ) -> #core::BoxFuture<'a, ::core::result::Result<#private::Value, #core::ToolError>> {
                ::std::boxed::Box::pin(async move {
                    #[allow(unused_imports, reason = "which of them is used depends on what the function returns")]
                    use #private::{ResultKind as _, ToolResultKind as _};
                    #plain_value
                    #[allow(unused_variables, reason = "a function may take no arguments")]
                    let __arguments = #private::read::<__ToolArguments>(__arguments)?;
                    #[allow(clippy::let_unit_value, reason = "a function may return nothing")]
                    let __returned = #tool::run(#context #(__arguments.#names),*).await;
                    #finish
                })
            }

            #timeout

            #describe
        }
    }
}

fn is_result(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Result"))
}

/// Returns a path as the string that derive macros take.
fn path_text(facade: &Path, last: &str) -> String {
    let last = format_ident!("{last}");
    quote!(#facade::__private::#last).to_string()
}

#[cfg(test)]
mod tests;
