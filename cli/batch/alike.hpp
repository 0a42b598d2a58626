// Records of a batch that are alike: they say the same but for their id, their seed and the numbers
// of their arrays. What they say is read, checked, planned and put into words once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/request/question.hpp"
#include "cli/request/request.hpp"
#include "core/base/thread_pool.hpp"
#include "core/plan/operand_shapes.hpp"
#include "core/plan/plan.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {

class AlikeRecords {
public:
    /// Those that are like the record of this line, which was answered by this plan. Empty where
    /// its answer depends on more than its line: on files, or on how much memory there is.
    static std::optional<AlikeRecords> of(const io::InputFile& line, Request request, Plan plan,
                                          OperandShapes shapes);

    /// Whether this line says what the others do. Its arrays may still have other shapes.
    bool hold(const io::InputFile& line) const;

    /// The arrays of a line of them. Errors: what is wrong with them, though not where.
    Operands read(const io::InputFile& line, const Session& session);

    /// Whether its arrays have the shapes that the others' have.
    bool fit(const OperandShapes& shapes) const { return shapes == shapes_; }

    /// The answer to a record of them, by their plan; `id` where the line says none.
    std::string answer(const io::InputFile& line, const std::string& id, Operands operands,
                       ThreadPool& workers);

private:
    enum class Part { id, seed, array, setting };

    /// A member of the line.
    struct Member {
        std::string key;
        Part part;
        std::string text;  // of a setting, as it is written
    };

    AlikeRecords() = default;
    Part part_of(const io::JsonDocument& document, const io::JsonMember& member) const;
    bool cut_head(const io::JsonDocument& document);

    Request request_;
    Plan plan_;
    OperandShapes shapes_;
    std::vector<Member> members_;
    std::vector<std::string> head_;  // of an answer, cut where it says the id, the id and the seed
    std::size_t longest_ = 0;        // answer
};

}  // namespace attn::cli
