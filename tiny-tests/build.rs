fn main() {
    println!("cargo::rustc-cfg=tiny");
    println!("cargo::rerun-if-changed=build.rs");
}
