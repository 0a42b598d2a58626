// A folder of files that appears with all of them, or not at all.
#pragma once

#include <set>
#include <string>

namespace attn::io {

/// Its files are written to a hidden folder next to it, which `commit` renames; without, an old
/// folder is unchanged. Only one exists at a time. Errors: kind io, with the system's reason.
class OutputFolder {
public:
    /// `files` are those that will be written; an old folder may have those of `replaced`. Errors:
    /// kind io if it has others, which would be lost.
    OutputFolder(const std::string& path, const std::set<std::string>& files,
                 const std::set<std::string>& replaced);
    OutputFolder(const OutputFolder&) = delete;
    OutputFolder& operator=(const OutputFolder&) = delete;
    ~OutputFolder();

    /// Where a file is until then.
    std::string path_of(const std::string& file) const;

    void commit();

private:
    std::string target_, temporary_, listed_;
};

}  // namespace attn::io
