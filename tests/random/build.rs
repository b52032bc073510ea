fn main() {
    let has_shuttle = std::env::var_os("CARGO_FEATURE_SHUTTLE").is_some();
    println!("cargo::rustc-cfg={}", if has_shuttle { "shuttle" } else { "tiny" });
    println!("cargo::rerun-if-changed=build.rs");
}
