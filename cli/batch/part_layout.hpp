// Files of --out-dir: parts, which hold arrays of many answers, and an index with a line for each
// answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/batch/outcome.hpp"
#include "cli/batch/records.hpp"
#include "io/write/output_formats.hpp"

namespace attn::cli {

/// The number of a part, from 0. --retry-failed writes all parts again, as another generation, so
/// that the old index and its parts stay valid until the new index replaces the old one.
struct PartId {
    std::uint64_t number = 0, generation = 0;
    friend bool operator==(const PartId&, const PartId&) = default;
};

struct PartLayout {
    std::string folder;
    const io::OutputFormat* format = nullptr;  ///< with write_archive; not null
    std::size_t records_per_file = 1000;
    Shard shard;  ///< several shards may share the folder

    /// The path of the index: "out/index.ndjson", "out/index-2-of-8.ndjson".
    std::string index() const;

    /// A file's name in the folder: "part-00003.npz", "part-2-of-8-00003.npz", and of generation 1
    /// "part-00003.1.npz".
    std::string part_name(const PartId& part) const;
    std::optional<PartId> part_named(const std::string& name) const;

    /// The number of the shard's n-th record among all records, both from 0.
    std::uint64_t record_number(std::uint64_t n) const {
        return n * shard.shards + shard.shard - 1;
    }

private:
    std::string shard_text() const;
};

/// What the current part holds. A part is complete with `records_per_file` records, or when they
/// take `part_bytes`: a part is in memory until it is complete.
class PartCount {
public:
    static constexpr std::size_t part_bytes = std::size_t{1} << 26;

    explicit PartCount(std::size_t records_per_file) : records_per_file_(records_per_file) {}

    /// Counts an answer: the bytes of its head, or of the line of a failed record, and its arrays.
    void add(std::size_t head, const std::vector<PackedArray>* arrays);
    bool is_complete() const { return records_ >= records_per_file_ || bytes_ >= part_bytes; }
    void begin_next();
    void begin_again();

    std::uint64_t number() const { return number_; }  ///< of the part, from 0

private:
    std::size_t records_per_file_, records_ = 0, bytes_ = 0;
    std::uint64_t number_ = 0;
};

/// Makes the folder if it does not exist. Errors: kind io.
void make_folder(const std::string& folder);

/// A folder without an index has no parts of an earlier run. Errors: kind io if a file has the name
/// of a part, which would be replaced.
void require_no_parts(const PartLayout& layout);

/// Removes the parts, complete or not, that do not belong to this generation or are not below
/// `parts`; no other files. They are left over from a run that was killed.
void remove_other_parts(const PartLayout& layout, std::uint64_t generation, std::uint64_t parts);

}  // namespace attn::cli
