// The arrays of another program that are to be checked, by attn's names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/precision.hpp"
#include "core/base/thread_pool.hpp"
#include "core/check/their_array.hpp"
#include "core/plan/plan.hpp"
#include "io/read/csv.hpp"
#include "io/read/result_view.hpp"

namespace attn::cli {

/// `--names Y=context_vectors`; `theirs` is empty for an array that has no name.
struct NamePair {
    std::string theirs;
    ArrayId ours;
};

/// "theirs=ours,..." or "ours" alone. Errors: kind usage for names that attn does not have.
std::vector<NamePair> read_names(const std::string& list);

struct TheirFile {
    std::string path;
    std::vector<GivenArray> arrays;         ///< at least one, in the order of computation
    std::vector<std::string> not_compared;  ///< their names
    /// Of one array without a name, whose shape is not that of context vectors: the other array of
    /// a result that it may be.
    std::optional<ArrayId> fits = {};
};

struct TheirOptions {
    std::vector<NamePair> names;
    std::optional<Precision> type;  ///< that the program computed in; empty: by its numbers
    io::CsvStyle csv;
};

/// Reads a program's arrays that the question has. Errors: kind usage if there is none, or two
/// for one of attn's, and for names that the file or the question does not have; those of
/// ResultView.
TheirFile read_theirs(const io::InputFile& file, const TheirOptions& options, const Plan& plan,
                      ThreadPool& pool);

/// What the text of an array tells about the numbers that were printed.
struct TextNumbers {
    /// Empty: enough digits for the numbers to be exact in their type.
    std::optional<PrintedDigits> printed;
    /// That the digits suffice for, float32 or float64.
    Precision type = Precision::float64;
};

/// Of JSON or CSV. Every word that begins like a number counts as one.
TextNumbers text_numbers(std::string_view text);

}  // namespace attn::cli
