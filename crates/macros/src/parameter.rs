//! Parameters of the function: the context, and the arguments that the model fills in.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Attribute, Error, FnArg, Ident, LitStr, Pat, PatType, Result, Signature, Type};

use crate::docs;

/// The form in which a function takes its `ToolContext`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    /// No parameter.
    None,
    /// A parameter of type `&ToolContext`.
    Borrowed,
    /// A parameter of type `ToolContext`.
    Owned,
}

/// An argument: a field of the struct that is deserialized from the call's JSON.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) field: TokenStream,
}

/// Parses the parameters, and removes the attributes that rustc does not allow on them.
pub(crate) fn parse(signature: &mut Signature) -> Result<(Context, Vec<Argument>)> {
    let mut context = Context::None;
    let mut arguments = Vec::new();
    for (index, parameter) in signature.inputs.iter_mut().enumerate() {
        let parameter = match parameter {
            FnArg::Typed(parameter) => parameter,
            FnArg::Receiver(receiver) => {
                return Err(Error::new_spanned(
                    receiver,
                    "a tool is a free function: what it needs besides its arguments goes into a static, or use \
                     `FunctionTool`, whose closure can hold it",
                ));
            }
        };
        match (context_of(&parameter.ty), index) {
            (Context::None, _) => arguments.push(argument(parameter)?),
            (found, 0) => context = found,
            (Context::Borrowed | Context::Owned, _) => {
                return Err(Error::new_spanned(parameter, "the context comes first"));
            }
        }
    }
    Ok((context, arguments))
}

fn context_of(ty: &Type) -> Context {
    let named = |ty: &Type| match ty {
        Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| last.ident == "ToolContext"),
        _ => false,
    };
    match ty {
        Type::Reference(reference) if reference.mutability.is_none() && named(&reference.elem) => {
            Context::Borrowed
        }
        other if named(other) => Context::Owned,
        _ => Context::None,
    }
}

fn argument(parameter: &mut PatType) -> Result<Argument> {
    let name = match &*parameter.pat {
        Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
            pattern.ident.clone()
        }
        other => {
            return Err(Error::new_spanned(
                other,
                "give this parameter a name: it is what the model fills in",
            ));
        }
    };
    check_type(&parameter.ty)?;
    let mut for_the_field: Vec<Attribute> = Vec::new();
    let mut description = None;
    for attribute in &parameter.attrs {
        if attribute.path().is_ident("arg") {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("description") {
                    description = Some(meta.value()?.parse::<LitStr>()?.value());
                    Ok(())
                } else {
                    Err(meta.error("there is only `#[arg(description = \"...\")]`"))
                }
            })?;
        } else if ["serde", "schemars"]
            .iter()
            .any(|name| attribute.path().is_ident(name))
        {
            for_the_field.push(attribute.clone());
        }
    }
    let docs = description
        .or_else(|| docs::description(&parameter.attrs))
        .map(|text| quote!(#[doc = #text]));
    parameter.attrs.retain(|attribute| {
        !["arg", "doc", "serde", "schemars"]
            .iter()
            .any(|name| attribute.path().is_ident(name))
    });
    let ty = &parameter.ty;
    // The span is the parameter's, so that "JsonSchema is not implemented" points at its type.
    let field = quote_spanned!(ty.span()=> #docs #(#for_the_field)* #name: #ty);
    Ok(Argument { name, field })
}

fn check_type(ty: &Type) -> Result<()> {
    match ty {
        Type::Reference(reference) => {
            let owned = match &*reference.elem {
                Type::Path(_) if context_of(&reference.elem) != Context::None => "`&ToolContext`",
                Type::Path(path) if path.path.is_ident("str") => "`String`",
                Type::Slice(_) => "a `Vec`",
                _ => "the type without `&`",
            };
            Err(Error::new_spanned(
                ty,
                format!("a tool owns its arguments: write {owned} here"),
            ))
        }
        Type::ImplTrait(_) => Err(Error::new_spanned(
            ty,
            "a tool's argument needs a type with a name",
        )),
        _ => Ok(()),
    }
}
