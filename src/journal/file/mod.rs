//! A journal: the changes since the last checkpoint, in a file that is mapped into memory.
//!
//! A store into the mapping survives the death of the process without a system call. Space is allocated ahead, so that
//! a full disk is an error of [`Writer::reserve`](write::Writer), and never a fault of a store.
//!
//! # The file
//!
//! All numbers are little-endian. The file consists of pages of 4 KiB, each with 256 records of two words. The first
//! page has only the header, of eight words:
//!
//! | word | what it is |
//! |---|---|
//! | 0 | the bytes `89 6B 6F 65 6C 6A 0D 0A` |
//! | 1 | the version of the format, 1 |
//! | 2 | a random number, the *key* of the journal |
//! | 3 | the key of the journal before it, or 0 |
//! | 4 and 5 | the state on which the changes are to be replayed: the checksum of its checksums, and its length in bytes. Both are 0 as long as there is none |
//! | 6 | the number of the journal, which its name has, too |
//! | 7 | the XXH3 of the words before |
//!
//! Of the other pages, 1, 2, 4, 8 or 16 in a row are a *chunk*, which belongs to one of 256 *streams*. The first record
//! of a chunk describes it: the lowest byte of word 0 is the number of the stream, the next byte the binary logarithm
//! of the number of pages, and the rest the number of earlier chunks of the stream in this journal. A page that is in
//! no chunk is not used. The chunks of a stream get longer: so a few changes take little space, and many seldom need
//! another chunk. The records that follow are changes. Word 0 of a record is the hash of an item, as it is after
//! mixing. The lowest three bits of word 1 are what happened: 1 added, 2 removed, 3 refreshed; 4 a tick, 6 a tick
//! toward the number in word 0, 7 all items removed, each of which is in all streams; 5 the beginning of a chunk; 0
//! that what follows comes after as many records of the same stream in the journal before as word 0 says. The others
//! are those of a check of word 0, of what happened, of the place of the record in the file, and of the key.
//!
//! # Where does a stream end?
//!
//! At the first record whose check fails, and after the last chunk of the stream. A process that is killed leaves at
//! most one record of a stream incomplete, the last one. A power failure may take any of what was not synced. What is
//! valid behind a gap counts for nothing: it might be a removal of an item whose insert is lost.

pub mod header;
pub mod mapping;
pub mod names;
pub mod read;
pub mod record;
pub mod space;
pub mod write;
