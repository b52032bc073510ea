fn main() {
    println!("cargo::rustc-cfg=counted");
    println!("cargo::rerun-if-changed=build.rs");
}
