//! Finds UCX by pkg-config and translates its header.

use std::{env, error::Error, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let ucx = pkg_config::Config::new()
        .atleast_version("1.13")
        .probe("ucx")?;
    let includes = ucx
        .include_paths
        .iter()
        .map(|path| format!("-I{}", path.display()));
    let bindings = bindgen::Builder::default()
        .header_contents(
            "ucp.h",
            "#include <stdlib.h>\n#include <stdio.h>\n#include <ucp/api/ucp.h>\n",
        )
        .clang_args(includes)
        .allowlist_function("ucp_.*|ucs_status_string")
        .allowlist_type("ucp_.*|ucs_.*")
        .allowlist_var("UCP_.*|UCS_.*")
        .prepend_enum_name(false)
        // What UCX returns may be a number that this header does not name.
        .default_enum_style(bindgen::EnumVariation::Consts)
        .derive_default(true)
        .generate_comments(false)
        .layout_tests(false)
        .generate()?;
    let out = PathBuf::from(env::var("OUT_DIR")?).join("bindings.rs");
    bindings.write_to_file(out)?;
    Ok(())
}
