//! An independent reader of the pieces of filters, written from the specification
//! (`koel::piece_format`). It can also change pieces and fix their checksums.

// Each test program uses only a part of this.
#![allow(dead_code)]

use crate::file::{BLOCK_HEAD, FilterFile, HEADER_WORDS, is_sealed, seal, sum_of, word};

pub const FRONT_WORDS: usize = 33;
pub const HEADER: usize = 9;

pub mod front {
    pub const BYTES: usize = 2;
    pub const FILTER: usize = 3;
    pub const TURN: usize = 4;
    pub const START: usize = 5;
    pub const END: usize = 6;
    pub const BLOCKS: usize = 7;
    pub const SUMS: usize = 8;
}

/// The words of a piece by part, including checksums.
#[derive(Clone, Debug, PartialEq)]
pub struct PieceFile {
    pub front: Vec<u64>,
    pub blocks: Vec<Vec<u64>>,
}

impl PieceFile {
    pub fn cut(bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<8>();
        assert!(rest.is_empty(), "a whole number of words");
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (front, blocks) = words.split_at(FRONT_WORDS);
        let header = &front[HEADER..][..HEADER_WORDS];
        let block = match header[word::LIST] {
            1 => blocks.len(),
            _ => BLOCK_HEAD + (header[word::BUCKETS] * header[word::WORDS]) as usize + 1,
        };
        assert!(blocks.len().is_multiple_of(block), "whole blocks");
        PieceFile { front: front.to_vec(), blocks: blocks.chunks(block).map(Vec::from).collect() }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let words = self.front.iter().chain(self.blocks.iter().flatten());
        words.flat_map(|word| word.to_le_bytes()).collect()
    }

    pub fn header(&self) -> &[u64] {
        &self.front[HEADER..][..HEADER_WORDS]
    }

    pub fn start(&self) -> u64 {
        self.front[front::START]
    }

    pub fn end(&self) -> u64 {
        self.front[front::END]
    }

    /// Where each block begins.
    pub fn places(&self) -> Vec<u64> {
        let after = |place: &mut u64, block: &Vec<u64>| {
            let begins = *place;
            *place += 1 << (31 - block[word::DEPTH]);
            Some(begins)
        };
        self.blocks.iter().scan(self.start(), after).collect()
    }

    /// Fixes the checksums and the length. Everything else stays as it is.
    pub fn sealed(mut self) -> Self {
        self.blocks.iter_mut().filter(|block| !block.is_empty()).for_each(|block| seal(block));
        self.front[front::BYTES] = self.bytes().len() as u64;
        self.front[front::SUMS] = self.sum_of_sums();
        seal(&mut self.front[HEADER..][..HEADER_WORDS]);
        seal(&mut self.front);
        self
    }

    fn sum_of_sums(&self) -> u64 {
        let sums = self.blocks.iter().filter_map(|block| block.last().copied());
        sum_of(&sums.collect::<Vec<u64>>())
    }

    /// Checks everything that the specification says of one piece, except for its header and the
    /// contents of its blocks.
    pub fn check(&self) {
        let words = &self.front;
        assert_eq!(words[0].to_le_bytes(), [0x89, 0x6B, 0x6F, 0x65, 0x6C, 0x70, 0x0D, 0x0A]);
        assert_eq!(words[1], 1);
        assert_eq!(words[front::BYTES], self.bytes().len() as u64);
        assert!(words[front::TURN] > 0);
        assert_eq!(words[front::BLOCKS], self.blocks.len() as u64);
        assert!(!self.blocks.is_empty());
        assert_eq!(words[front::SUMS], self.sum_of_sums());
        assert!(is_sealed(self.header()) && is_sealed(words));
        for (number, block) in (0..).zip(&self.blocks) {
            assert_eq!(block[0], number);
            assert!(is_sealed(block));
        }
        let places = self.places();
        for (place, block) in places.iter().zip(&self.blocks) {
            assert!(place.is_multiple_of(1 << (31 - block[word::DEPTH])));
        }
        let last = self.blocks.last().expect("a block")[word::DEPTH];
        assert_eq!(places[places.len() - 1] + (1 << (31 - last)), self.end());
    }

    /// Returns the file that the pieces of a dump make up, after checking that they do.
    pub fn file_of(pieces: &[PieceFile]) -> FilterFile {
        let last = pieces.last().expect("a piece");
        let (mut place, mut turn) = (0, 0);
        for piece in pieces {
            piece.check();
            assert_eq!(piece.front[front::FILTER], last.front[front::FILTER]);
            assert_eq!(piece.start(), place);
            assert!(piece.front[front::TURN] > turn);
            (place, turn) = (piece.end(), piece.front[front::TURN]);
        }
        assert_eq!(place, last.header()[word::ROOTS] << 31);
        let blocks = pieces.iter().flat_map(|piece| piece.blocks.clone()).collect();
        let end = vec![u64::from_le_bytes(*b"koel end"), 0, 0, 0, 0, 0];
        FilterFile { header: last.header().to_vec(), blocks, end }.sealed()
    }
}
