// Records of a batch that are alike: they say the same but for their id, their seed and the numbers
// of their arrays. What they say is read, checked, planned and put into words once.
#pragma once

#include <optional>
#include <string>
#include <string_view>
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
    /// Whether a record's answer depends on its line alone: not on files, nor on how much memory
    /// there is.
    static bool may_be(const io::InputFile& line, const Request& request, const Plan& plan,
                       const OperandShapes& shapes);

    /// Those that are like the record of this line, whose request this is.
    AlikeRecords(const io::InputFile& line, Request request);

    /// Whether this line says what the others do. Its arrays may still have other shapes.
    bool hold(const io::InputFile& line) const;

    /// A plan for records of them whose arrays have these shapes.
    void add(Plan plan, OperandShapes shapes);

    /// The answer to a record of them, `id` where the line says none; empty where there is no plan
    /// for its shapes. Errors: what is wrong with the record, though not where.
    std::optional<io::TextBuffer> answer(const io::InputFile& line, const std::string& id,
                                         const Runtime& runtime);

private:
    enum class Part { id, seed, array, setting };

    /// A member of the line.
    struct Member {
        std::string key;
        Part part;
        std::string text;  // of a setting, as it is written
    };

    struct Planned {
        OperandShapes shapes;
        Plan plan;
        std::vector<std::string> head;  // of an answer, cut where it says id, id and seed
        std::size_t longest = 0;        // answer
    };

    std::string head_of(Planned& planned, std::string_view seed);

    Request request_;
    std::vector<Member> members_;
    std::vector<Planned> planned_;
    std::size_t oldest_ = 0;  // of them
};

}  // namespace attn::cli
