//! Rows as bytes: numbers of fixed width, little-endian, then texts with their length before them.
//!
//! Reading copies nothing: texts are borrowed from the stored row.

/// A field of a row.
pub(crate) trait Field<'a>: Sized {
    fn write(&self, out: &mut Vec<u8>);
    fn read(input: &mut &'a [u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Field<'_> for $number {
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn read(input: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = input.split_first_chunk()?;
                *input = rest;
                Some(Self::from_le_bytes(*bytes))
            }
        }
    )*};
}
numbers!(u8, u16, u32, u64, i16, i64);

/// Text of varying length, at most 65,535 bytes.
impl<'a> Field<'a> for &'a [u8] {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        (self.len() as u16).write(out);
        out.extend_from_slice(self);
    }

    #[inline]
    fn read(input: &mut &'a [u8]) -> Option<Self> {
        let len = u16::read(input)?;
        let (text, rest) = input.split_at_checked(usize::from(len))?;
        *input = rest;
        Some(text)
    }
}

/// Text of fixed length.
impl<'a, const N: usize> Field<'a> for &'a [u8; N] {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(*self);
    }

    #[inline]
    fn read(input: &mut &'a [u8]) -> Option<Self> {
        let (text, rest) = input.split_first_chunk()?;
        *input = rest;
        Some(text)
    }
}

macro_rules! row {
    ($(#[$about:meta])* $name:ident { $($field:ident: $kind:ty,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) struct $name<'a> {
            $(pub $field: $kind,)*
            pub row: $crate::application::rows::Whole<'a>,
        }

        impl<'a> $name<'a> {
            /// The row of these bytes; none if they are not exactly one.
            #[inline]
            pub(crate) fn read(mut bytes: &'a [u8]) -> Option<Self> {
                let row = Self {
                    $($field: $crate::application::rows::Field::read(&mut bytes)?,)*
                    row: $crate::application::rows::Whole::default(),
                };
                bytes.is_empty().then_some(row)
            }

            /// The bytes of the row, in place of what `out` held.
            #[inline]
            pub(crate) fn write<'b>(&self, out: &'b mut Vec<u8>) -> &'b [u8] {
                out.clear();
                $($crate::application::rows::Field::write(&self.$field, out);)*
                out
            }
        }
    };
}

/// Gives rows without texts the lifetime that those with texts have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Whole<'a>(std::marker::PhantomData<&'a ()>);

pub(crate) use row;
