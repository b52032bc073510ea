//! Reproducible pseudo-random numbers.

/// Mixes the bits of a number with the finalizer of SplitMix64.
pub fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Maps a random number to `0..below`, almost uniformly.
pub fn scaled(random: u64, below: u64) -> u64 {
    ((u128::from(random) * u128::from(below)) >> 64) as u64
}
