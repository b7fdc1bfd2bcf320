//! Options: the contents of `#[tool(...)]`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{Error, Ident, LitInt, LitStr, Path, Result, Token};

/// The parsed and checked options.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) timeout_secs: Option<u64>,
    pub(crate) describe: Option<Path>,
    pub(crate) facade: Option<Path>,
    flags: Vec<Ident>,
}

/// The flags, which are fields of `adjutant_core::Annotations`.
const FLAGS: &[&str] = &[
    "read_only",
    "destructive",
    "idempotent",
    "keyed",
    "parallel",
    "closed_world",
];
const KNOWN: &str = "read_only, destructive, idempotent, keyed, parallel, closed_world, name = \"...\", description = \"...\", \
                     timeout_secs = N, describe = path, crate = path";

impl Options {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let options = (|input: ParseStream<'_>| {
            let mut options = Self::default();
            let mut seen: Vec<Ident> = Vec::new();
            while !input.is_empty() {
                // `crate` is a keyword and no plain identifier.
                let option = Ident::parse_any(input)?;
                if seen.contains(&option) {
                    return Err(Error::new(
                        option.span(),
                        format!("`{option}` is given twice"),
                    ));
                }
                options.parse_one(&option, input)?;
                seen.push(option);
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
            }
            Ok(options)
        })
        .parse2(tokens)?;
        if let (Some(_), Some(destructive)) =
            (options.flag("read_only"), options.flag("destructive"))
        {
            let message = "a `read_only` tool changes nothing, so it cannot be `destructive`: keep one of them";
            return Err(Error::new(destructive.span(), message));
        }
        Ok(options)
    }

    fn parse_one(&mut self, option: &Ident, input: ParseStream<'_>) -> Result<()> {
        match option.to_string().as_str() {
            flag if FLAGS.contains(&flag) => self.flags.push(option.clone()),
            "name" => self.name = Some(parse_string(option, input)?),
            "description" => {
                let description = parse_string(option, input)?;
                if description.value().trim().is_empty() {
                    return Err(Error::new(
                        description.span(),
                        "the description is blank: the model chooses by it",
                    ));
                }
                self.description = Some(description);
            }
            "timeout_secs" => {
                input.parse::<Token![=]>()?;
                let seconds: LitInt = input.parse()?;
                let value = seconds.base10_parse()?;
                if value == 0 {
                    return Err(Error::new(
                        seconds.span(),
                        "a tool needs at least one second",
                    ));
                }
                self.timeout_secs = Some(value);
            }
            "describe" => {
                input.parse::<Token![=]>()?;
                self.describe = Some(input.parse().map_err(|error: Error| {
                    Error::new(
                        error.span(),
                        "`describe` is the path of a function: describe = words_of_weather",
                    )
                })?);
            }
            "crate" => {
                input.parse::<Token![=]>()?;
                self.facade = Some(Path::parse_mod_style(input)?);
            }
            other => {
                return Err(Error::new(
                    option.span(),
                    format!("there is no option `{other}`; there are {KNOWN}"),
                ));
            }
        }
        Ok(())
    }

    fn flag(&self, name: &str) -> Option<&Ident> {
        self.flags.iter().find(|flag| *flag == name)
    }

    /// Returns the expression `Annotations { ... }`.
    pub(crate) fn annotations(&self, private: &TokenStream) -> TokenStream {
        let flags = &self.flags;
        quote! {
            #private::adjutant_core::Annotations {
                #(#flags: true,)*
                ..::core::default::Default::default()
            }
        }
    }
}

fn parse_string(option: &Ident, input: ParseStream<'_>) -> Result<LitStr> {
    input.parse::<Token![=]>()?;
    input.parse().map_err(|error| {
        Error::new(
            error.span(),
            format!("`{option}` is text: {option} = \"...\""),
        )
    })
}

/// Returns the tool's name: that of `name = "..."`, or the function's.
pub(crate) fn tool_name(options: &Options, function: &Ident) -> Result<String> {
    let (name, span): (String, Span) = match &options.name {
        Some(name) => (name.value(), name.span()),
        // A function may be called `r#type`; the tool is then `type`.
        None => (function.unraw().to_string(), function.span()),
    };
    // Source: `adjutant_core::ToolName`.
    let letters = name
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    let first = name
        .bytes()
        .next()
        .is_some_and(|byte| !byte.is_ascii_digit());
    if letters && first && name.len() <= 64 {
        Ok(name)
    } else {
        let message = format!(
            "{name:?} cannot be a tool's name: lower-case letters, digits and _ only, not starting with a digit, \
             1 to 64 characters. Give it one: #[tool(name = \"...\")]"
        );
        Err(Error::new(span, message))
    }
}
