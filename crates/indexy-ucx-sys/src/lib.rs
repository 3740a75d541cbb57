//! UCP, the protocol layer of UCX 1.13 or newer, as its C header has it.
//!
//! The names are C's. Beside them are the header's macros and inline functions that a translation
//! leaves out.

#![allow(
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    reason = "generated"
)]

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));

/// What a pointer that a request was made with says: `UCS_PTR_IS_ERR` and `UCS_PTR_STATUS`.
/// `Ok(None)`: it is done.
pub fn request(pointer: ucs_status_ptr_t) -> Result<Option<ucs_status_ptr_t>, ucs_status_t> {
    match pointer.addr() {
        0 => Ok(None),
        // Errors are small negative numbers.
        address if address as isize >= UCS_ERR_LAST as isize && (address as isize) < 0 => {
            Err(address as isize as ucs_status_t)
        }
        _ => Ok(Some(pointer)),
    }
}

/// The text of a status.
pub fn text(status: ucs_status_t) -> String {
    // SAFETY: UCX returns a static string with an end for every number.
    let text = unsafe { std::ffi::CStr::from_ptr(ucs_status_string(status)) };
    text.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_a_status_or_a_request() {
        let pointer = |number: isize| number as usize as ucs_status_ptr_t;
        assert_eq!(request(pointer(0)), Ok(None));
        assert_eq!(request(pointer(-1)), Err(UCS_ERR_NO_MESSAGE));
        assert_eq!(request(pointer(-100)), Err(UCS_ERR_LAST));
        assert_eq!(request(pointer(4096)), Ok(Some(pointer(4096))));
    }

    #[test]
    fn the_library_is_as_new_as_the_header() {
        let (mut major, mut minor, mut release) = (0, 0, 0);
        // SAFETY: three places to write to.
        unsafe { ucp_get_version(&mut major, &mut minor, &mut release) };
        assert!((major, minor) >= (UCP_API_MAJOR, UCP_API_MINOR));
        assert_eq!(text(UCS_OK), "Success");
    }
}
