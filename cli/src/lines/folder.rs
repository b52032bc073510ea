//! `--output-dir`: for each input, a file of its name in a folder, compressed as the input is.
//!
//! A file takes its place when its input has been read to the end, as a whole. If a state knows the lines that are
//! there, the new ones come after them, in a new file that has all of them.

use crate::failure::{Failure, locked};
use crate::lines::chunk::Chunk;
use crate::lines::cutter::{Cut, Cutter};
use crate::lines::input::Source;
use crate::lines::output::{is_free, sync_folder_of};
use crate::lines::packing::{Form, Packer, Piece};
use crate::lines::replacement::{Replacement, SUFFIX};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The files of a run.
pub struct Folder {
    /// The file of each source.
    files: Vec<PathBuf>,
    /// The byte that ends a line, if lines that are there stay.
    kept: Option<u8>,
    threads: u32,
    current: Mutex<Option<Output>>,
}

/// A file that is being written.
struct Output {
    replacement: Replacement,
    packer: Packer,
    /// The number of bytes, uncompressed, of the lines that were there.
    kept: u64,
}

impl Folder {
    /// Checks that each source can have a file in a folder, and makes the folder.
    pub fn open(
        path: &Path,
        kept: Option<u8>,
        sources: &[Source],
        state: Option<&Path>,
        threads: usize,
    ) -> Result<Folder, Failure> {
        let id = |file: Metadata| (file.dev(), file.ino());
        let inputs: HashSet<_> = sources.iter().filter_map(Source::metadata).map(id).collect();
        let (mut files, mut targets) = (Vec::new(), HashMap::new());
        let folder = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        for source in sources {
            let input = source.name();
            let name = if let Source::File(path) = source { path.file_name() } else { None };
            let no_name = "it has no name for a file in --output-dir; name files, or use --output";
            let name = name.ok_or_else(|| Failure::of(&input, no_name))?;
            let file = path.join(name);
            let shown = file.display();
            if name.as_encoded_bytes().ends_with(SUFFIX.as_bytes()) {
                let what = format!("names that end with {SUFFIX} are of files not in place yet");
                return Err(Failure::of(&input, format!("{what}; rename it")));
            }
            // A link is followed, so what is replaced is its target.
            let target = match fs::canonicalize(&file) {
                Ok(target) => target,
                Err(_) if file.is_symlink() => {
                    return Err(Failure::about(&file, "this link leads nowhere; remove it"));
                }
                Err(_) => folder.join(name),
            };
            if let Some(other) = targets.insert(target, source.name()) {
                let what = "rename one, or use another --output-dir for it";
                let both = format!("{other} and {input} would both be written to {shown}; {what}");
                return Err(Failure::new(both));
            }
            if let Ok(about) = file.metadata() {
                let is_input = inputs.contains(&(about.dev(), about.ino()));
                if is_input || !about.is_file() {
                    let is = if is_input { "an input" } else { "no regular file" };
                    let what = format!("this is {is}; use another --output-dir");
                    return Err(Failure::about(&file, what));
                }
                is_free(&about, Some(&file), &[], state)?;
            }
            files.push(file);
        }
        let cannot = format!("{}: cannot make this folder", path.display());
        fs::create_dir_all(path).map_err(|error| Failure::of(cannot, &error))?;
        let threads = threads as u32; // at most 256
        Ok(Folder { files, kept, threads, current: Mutex::new(None) })
    }

    /// Writes the selected lines of a chunk to the file of its source, and puts the file in place after the last one.
    /// `before` is called right before that, with the path, the file and the number of bytes that were there.
    pub fn write(
        &self,
        chunk: &Chunk,
        before: impl FnOnce(&Path, &File, u64) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let path = &self.files[chunk.source];
        let mut current = locked(&self.current);
        // The file of an input from which nothing could be read stays as it is, and so does one whose lines are kept.
        let is_needed = !chunk.selected.is_empty()
            || chunk.is_last
                && chunk.counts.unreadable == 0
                && !(self.kept.is_some() && path.exists());
        if current.is_none() && is_needed {
            *current = Some(self.begin(path, chunk.form)?);
        }
        let Some(output) = &mut *current else { return Ok(()) };
        let cannot = |error| Failure::about(path, &error);
        if !chunk.selected.is_empty() {
            output.packer.write(&chunk.selected, &chunk.packed).map_err(cannot)?;
        }
        if !chunk.is_last {
            return Ok(());
        }
        let Some(Output { replacement, packer, kept }) = current.take() else { return Ok(()) };
        packer.finish().map_err(cannot)?;
        before(replacement.target(), &replacement.file().map_err(cannot)?, kept)?;
        replacement.finish()?;
        if self.kept.is_some() {
            sync_folder_of(path);
        }
        Ok(())
    }

    /// Begins a file, with the lines that are there if they are to stay.
    fn begin(&self, path: &Path, form: Option<Form>) -> Result<Output, Failure> {
        let cannot = |error| Failure::about(path, &error);
        let replacement = Replacement::begin(path)?;
        let file = replacement.file().map_err(cannot)?;
        let packer = Packer::begin(file, form, self.threads).map_err(cannot)?;
        let mut output = Output { replacement, packer, kept: 0 };
        if let (Some(terminator), Some(_)) = (self.kept, &output.replacement.old) {
            let what = format!("{}: cannot keep the lines that are there", path.display());
            output.keep(path, form, terminator).map_err(|error| Failure::of(what, &error))?;
        }
        Ok(output)
    }

    /// Removes the file that is not in place yet.
    pub fn discard(&self) {
        locked(&self.current).take();
    }
}

impl Output {
    /// Copies the lines that are there.
    fn keep(&mut self, path: &Path, form: Option<Form>, terminator: u8) -> io::Result<()> {
        let input = Source::File(path.to_path_buf()).open(&Arc::default())?;
        let (mut cutter, mut chunk) = (Cutter::new(input, terminator), Chunk::default());
        let mut piece = Piece::default();
        loop {
            match cutter.fill(&mut chunk)? {
                Cut::Lines => {}
                Cut::TooLong => return Err(io::Error::other("it has a line that is too long")),
                Cut::End => return Ok(()),
            }
            let lines = &chunk.text[..chunk.ends.last().map_or(0, |&end| end as usize)];
            if form == Some(Form::Gzip) {
                piece.pack(lines)?;
            }
            self.packer.write(lines, &piece)?;
            self.kept += lines.len() as u64;
        }
    }
}
