// Compares an index of --out-dir with its parts when a batch goes on.
#pragma once

#include <cstdint>
#include <string>

#include "cli/batch/index_line.hpp"
#include "cli/batch/part_layout.hpp"
#include "cli/batch/parts.hpp"

namespace attn::cli {

class ResumedParts {
public:
    explicit ResumedParts(const PartLayout& layout)
        : layout_(layout), so_far_(layout.records_per_file) {}

    /// The next answer of the index, whose line starts at byte `begin`. Returns what is wrong: the
    /// answer is not where this batch would write it, or its part is not whole.
    std::string pass(IndexedAnswer answer, std::uint64_t begin);

    /// Removes the parts that the index does not have.
    void remove_others() const;

    PartsSoFar so_far() const;

    /// The byte of the index where the lines of the part that is not complete start; without one,
    /// `end`.
    std::uint64_t begin(std::uint64_t end) const { return so_far_.answers.empty() ? end : begin_; }

private:
    std::string check(const IndexLine& line);

    const PartLayout& layout_;
    PartsSoFar so_far_;
    std::uint64_t begin_ = 0;
    std::uint64_t passed_ = 0;
    bool has_file_ = false;  // the generation is known
    std::string file_;       // the part whose size is known
    std::uint64_t size_ = 0;
};

/// The generation of the index's parts; 0 without any. Errors: kind io.
std::uint64_t generation_of(const PartLayout& layout);

}  // namespace attn::cli
