#![forbid(unsafe_code)]
//! `#[derive(Row)]` of the crate `indexy-table`, which re-exports it and documents it at its trait
//! `Row`.

use proc_macro::TokenStream;
use quote::quote;
use syn::{
    Data, DeriveInput, Error, Expr, Fields, Ident, LitStr, Result, ext::IdentExt,
    meta::ParseNestedMeta, parenthesized, parse_macro_input, punctuated::Punctuated, token,
};

/// Makes a structure with named fields a row of a table; see the trait of the same name.
#[proc_macro_derive(Row, attributes(row))]
pub fn derive_row(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// An index, as an expression of type `Index`.
struct Index {
    name: String,
    index: proc_macro2::TokenStream,
}

/// What the attributes of a field say.
struct Column {
    field: Ident,
    ty: syn::Type,
    name: String,
    primary_key: bool,
    default: Option<Expr>,
    index: Option<Index>,
}

fn expand(input: &DeriveInput) -> Result<proc_macro2::TokenStream> {
    let fields = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => &fields.named,
            other => return Err(Error::new_spanned(other, "a row has named fields")),
        },
        _ => return Err(Error::new_spanned(input, "a row is a structure")),
    };
    let (table, mut indexes) = of_structure(input)?;
    let mut columns = Vec::new();
    for field in fields {
        let mut column = of_field(field)?;
        indexes.extend(column.index.take());
        columns.push(column);
    }
    if !columns.iter().any(|column| column.primary_key) {
        let what = "no field is marked #[row(primary_key)]";
        return Err(Error::new_spanned(&input.ident, what));
    }
    let described = columns.iter().map(|column| {
        let (name, ty) = (&column.name, &column.ty);
        let default = column.default.iter();
        quote! {
            .column(#name, {
                let column = ::indexy_table::Column::new(
                    <#ty as ::indexy_table::Cell>::TYPE,
                );
                #(let column = column.default(#default);)*
                if <#ty as ::indexy_table::Cell>::NULLABLE { column.nullable() } else { column }
            })
        }
    });
    let key = columns.iter().filter(|column| column.primary_key);
    let key = key.map(|column| &column.name);
    let indexes = indexes
        .iter()
        .map(|Index { name, index }| quote!(.index(#name, #index)));
    let names = columns.iter().map(|column| &column.name);
    let of = columns.iter().map(|column| &column.field);
    let to = of.clone();
    let (name, (generics, of_type, condition)) = (&input.ident, input.generics.split_for_impl());
    Ok(quote! {
        impl #generics ::indexy_table::Row for #name #of_type #condition {
            fn schema() -> ::indexy_table::Schema {
                ::indexy_table::Schema::new(#table)
                    #(#described)*
                    .primary_key([#(#key),*])
                    #(#indexes)*
            }
            fn to_values(&self) -> ::std::vec::Vec<::indexy_table::Value> {
                ::std::vec![#(::indexy_table::Cell::to_value(&self.#to)),*]
            }
            fn from_record(
                mut record: ::indexy_table::Record,
            ) -> ::indexy_table::Result<Self> {
                ::std::result::Result::Ok(Self {
                    #(#of: record.take(#table, #names)?),*
                })
            }
        }
    })
}

/// Name of the table, and the indexes that the structure itself names.
fn of_structure(input: &DeriveInput) -> Result<(String, Vec<Index>)> {
    let mut table = input.ident.unraw().to_string().to_lowercase();
    let mut indexes = Vec::new();
    for attribute in input.attrs.iter().filter(|a| a.path().is_ident("row")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("table") {
                table = meta.value()?.parse::<LitStr>()?.value();
                Ok(())
            } else if meta.path.is_ident("index") {
                indexes.push(index_of_structure(&meta)?);
                Ok(())
            } else {
                Err(meta.error("of a structure: table = \"..\", index(name = \"..\", on(..), ..)"))
            }
        })?;
    }
    Ok((table, indexes))
}

/// `index(name = "..", on(a, b), unique, include(c))`: columns.
fn index_of_structure(meta: &ParseNestedMeta<'_>) -> Result<Index> {
    let (mut name, mut on, mut include, mut unique) = (None, Vec::new(), Vec::new(), false);
    meta.parse_nested_meta(|meta| {
        if meta.path.is_ident("name") {
            name = Some(meta.value()?.parse::<LitStr>()?.value());
        } else if meta.path.is_ident("on") {
            on = columns(&meta)?;
        } else if meta.path.is_ident("include") {
            include = columns(&meta)?;
        } else if meta.path.is_ident("unique") {
            unique = true;
        } else {
            return Err(meta.error("of an index: name = \"..\", on(..), unique, include(..)"));
        }
        Ok(())
    })?;
    if on.is_empty() {
        return Err(meta.error("an index is on(..) columns"));
    }
    let unique = unique.then(|| quote!(.unique()));
    let include = (!include.is_empty()).then(|| quote!(.include([#(#include),*])));
    Ok(Index {
        name: name.unwrap_or_else(|| format!("by_{}", on.join("_"))),
        index: quote!(::indexy_table::Index::on([#(#on),*]) #unique #include),
    })
}

/// `(a, b)`, as names or as strings.
fn columns(meta: &ParseNestedMeta<'_>) -> Result<Vec<String>> {
    let inside;
    parenthesized!(inside in meta.input);
    let name = |input: syn::parse::ParseStream<'_>| match input.peek(LitStr) {
        true => input.parse::<LitStr>().map(|name| name.value()),
        false => input.parse::<Ident>().map(|name| name.unraw().to_string()),
    };
    let names = Punctuated::<String, token::Comma>::parse_terminated_with(&inside, name)?;
    Ok(names.into_iter().collect())
}

fn of_field(field: &syn::Field) -> Result<Column> {
    let Some(ident) = field.ident.clone() else {
        return Err(Error::new_spanned(field, "a row has named fields"));
    };
    let mut column = Column {
        name: ident.unraw().to_string(),
        ty: field.ty.clone(),
        field: ident,
        primary_key: false,
        default: None,
        index: None,
    };
    // Name and whether it is unique, until the name of the column is known.
    let mut index: Option<(Option<String>, bool)> = None;
    for attribute in field.attrs.iter().filter(|a| a.path().is_ident("row")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("primary_key") {
                column.primary_key = true;
            } else if meta.path.is_ident("column") {
                column.name = meta.value()?.parse::<LitStr>()?.value();
            } else if meta.path.is_ident("default") {
                column.default = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("index") || meta.path.is_ident("unique") {
                let name = match meta.input.peek(token::Eq) {
                    true => Some(meta.value()?.parse::<LitStr>()?.value()),
                    false => None,
                };
                let (known, unique) = index.take().unwrap_or_default();
                if known.is_some() && name.is_some() && known != name {
                    let what = "a field has one index; the structure can have more: index(..)";
                    return Err(meta.error(what));
                }
                index = Some((known.or(name), unique || meta.path.is_ident("unique")));
            } else {
                let known = "primary_key, index, unique, column = \"..\", default = ..";
                return Err(meta.error(format!("of a field: {known}")));
            }
            Ok(())
        })?;
    }
    if let Some((name, unique)) = index {
        let on = &column.name;
        let unique = unique.then(|| quote!(.unique()));
        column.index = Some(Index {
            name: name.unwrap_or_else(|| format!("by_{on}")),
            index: quote!(::indexy_table::Index::on([#on]) #unique),
        });
    }
    Ok(column)
}

#[cfg(test)]
mod tests {
    use super::expand;
    use syn::{DeriveInput, parse_quote};

    fn refused(input: &DeriveInput) -> Option<String> {
        expand(input).err().map(|error| error.to_string())
    }

    #[test]
    fn a_field_with_two_names_of_an_index_is_refused() {
        let two: [DeriveInput; 2] = [
            parse_quote! {
                struct Person {
                    #[row(primary_key, index = "a", index = "b")]
                    id: u64,
                }
            },
            parse_quote! {
                struct Person {
                    #[row(primary_key, index = "a")]
                    #[row(unique = "b")]
                    id: u64,
                }
            },
        ];
        for input in two {
            let reason = refused(&input).unwrap();
            assert!(reason.contains("one index"), "{reason}");
        }
        let one: DeriveInput = parse_quote! {
            struct Person {
                #[row(primary_key, index = "a", unique)]
                id: u64,
            }
        };
        assert_eq!(refused(&one), None);
    }
}
