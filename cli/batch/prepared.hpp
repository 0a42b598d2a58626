// Records of a batch that differ only in their id, meta, seed and arrays. The rest is read, checked
// and formatted once; a plan is made once per set of shapes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/batch/outcome.hpp"
#include "cli/question/question.hpp"
#include "cli/request/request.hpp"
#include "core/base/thread_pool.hpp"
#include "core/plan/plan.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {

class Prepared {
public:
    /// Whether a record's answer depends only on its line, not on files or on available memory.
    /// `memory` is what the answer takes, in bytes.
    static bool may_be(const io::InputFile& line, const Request& request, const Plan& plan,
                       double memory);

    /// The records like the one on `line`, whose request is `request`.
    Prepared(const io::InputFile& line, Request request);

    /// Whether the line has the same keys and settings as these records. Its arrays may have other
    /// shapes.
    bool hold(const io::InputFile& line) const;

    /// Adds a plan for records whose arrays have the shapes of its operands.
    void add(Plan plan);

    /// The answer to a record like these; `id` is its id if the line has none. Empty if no plan has
    /// its shapes. Errors: the problem of the record, without its location.
    std::optional<RecordOutcome> answer(const io::InputFile& line, const std::string& id,
                                        const Runtime& runtime);

private:
    enum class Part { id, meta, seed, array, setting };

    /// A member of the line's JSON object.
    struct Member {
        std::string key;
        Part part;
        std::string text;  // of a setting, verbatim
    };

    struct Planned {
        Plan plan;
        std::vector<std::string> head;  // of an answer, split around its slots()
        std::size_t longest = 0;        // answer, in bytes
    };

    /// What differs in heads: keys and values, in order; a value is empty if records lack the key.
    using Slots = std::array<std::pair<std::string_view, std::string_view>, 4>;
    Slots slots(std::string_view seed) const;
    std::string head_of(Planned& planned, std::string_view seed);

    Request request_;
    std::vector<Member> members_;
    std::vector<Planned> planned_;
    std::size_t oldest_ = 0;  // the plan replaced next, modulo their number
};

}  // namespace attn::cli
