// Records of a batch that are alike; see alike.hpp.
#include "cli/batch/alike.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "cli/request/document.hpp"
#include "cli/request/inputs.hpp"
#include "cli/request/output.hpp"
#include "core/layer/layer.hpp"
#include "io/file/output.hpp"

namespace attn::cli {
namespace {

/// Of lines and answers: beyond it the memory that there is may matter.
constexpr std::size_t longest_alike = std::size_t{1} << 20;

/// A seed that `config` says as it is written here.
bool is_plain_seed(std::string_view text) {
    constexpr std::size_t always_fit = 18;  // digits, of 64 bits
    return text.size() <= always_fit &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Seed seed_of(std::string_view text) {
    Seed seed;
    std::from_chars(text.data(), text.data() + text.size(), seed.bits);
    return seed;
}

bool depends_on_more(const Request& request, const OperandShapes& shapes) {
    return !request.operand_files.empty() || request.example || request.text || shapes.weights ||
           shapes.norm || shapes.has_token_ids || request.is_next_layer;
}

}  // namespace

std::optional<AlikeRecords> AlikeRecords::of(const io::InputFile& line, Request request, Plan plan,
                                             OperandShapes shapes) {
    const bool is_small = line.source->text.size() <= longest_alike &&
                          answer_cost(request, plan).memory <= static_cast<double>(longest_alike);
    if (!is_small || depends_on_more(request, shapes)) return {};
    AlikeRecords alike;
    alike.request_ = std::move(request);
    alike.plan_ = std::move(plan);
    alike.shapes_ = std::move(shapes);
    // The text that they point into goes with its record.
    for (auto& [key, place] : alike.request_.places) place.value = {};
    const io::JsonDocument& document = *line.document;
    alike.members_.reserve(document.members().size());
    for (const io::JsonMember& member : document.members()) {
        const Part part = alike.part_of(document, member);
        alike.members_.push_back(
            {member.key, part,
             part == Part::setting ? std::string(document.text(member)) : std::string()});
    }
    if (!alike.cut_head(document)) return {};
    return alike;
}

AlikeRecords::Part AlikeRecords::part_of(const io::JsonDocument& document,
                                         const io::JsonMember& member) const {
    if (member.key == "id") return Part::id;
    if (member.key == "seed" && is_plain_seed(document.text(member))) return Part::seed;
    return is_array_of(plan_.mode, document, member) ? Part::array : Part::setting;
}

/// Keys are found by their quotes: in texts a quote has a backslash before it.
bool AlikeRecords::cut_head(const io::JsonDocument& document) {
    const std::string head = head_text(request_, plan_);
    std::size_t from = 0;
    const auto cut = [&](std::string_view key, std::string_view value) {
        const std::size_t found = head.find(key, from);
        const std::size_t at = found + key.size();
        if (found == std::string::npos || head.compare(at, value.size(), value) != 0) return false;
        head_.push_back(head.substr(from, at - from));
        from = at + value.size();
        return true;
    };
    const io::JsonMember* seed = document.find("seed");
    const bool names_seed = seed != nullptr && part_of(document, *seed) == Part::seed;
    head_.reserve(4);
    if (!cut("\"id\":", request_.id) || !cut("\"id\":", request_.id)) return false;
    if (names_seed && !cut("\"seed\":", document.text(*seed))) return false;
    head_.push_back(head.substr(from));
    return true;
}

bool AlikeRecords::hold(const io::InputFile& line) const {
    const io::JsonDocument& document = *line.document;
    const auto is_like = [&](const Member& a, const io::JsonMember& b) {
        if (a.key != b.key) return false;
        switch (a.part) {
            case Part::id: break;
            case Part::seed: return is_plain_seed(document.text(b));
            case Part::array: return document.holds_array(b);
            case Part::setting: return a.text == document.text(b);
        }
        return true;
    };
    return line.source->text.size() <= longest_alike &&
           std::equal(members_.begin(), members_.end(), document.members().begin(),
                      document.members().end(), is_like);
}

Operands AlikeRecords::read(const io::InputFile& line, const Session& session) {
    if (request_.threads) session.pool.set_threads(*request_.threads);
    return read_arrays(request_, line, session.pool, session.models);
}

std::string AlikeRecords::answer(const io::InputFile& line, const std::string& id,
                                 Operands operands, ThreadPool& workers) {
    const io::JsonDocument& document = *line.document;
    request_.id = id;
    std::string_view seed;
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const io::JsonMember& member = document.members()[i];
        if (members_[i].part == Part::id) store_id(request_, document, member);
        if (members_[i].part == Part::seed) seed = document.text(member);
    }
    if (!seed.empty()) plan_.parameters.seed = seed_of(seed);
    const Result result = compute(plan_, std::move(operands), workers);
    io::TextOutput out;
    std::string& text = out.text();
    text.reserve(longest_ + longest_ / 8);
    ((((text += head_[0]) += request_.id) += head_[1]) += request_.id) += head_[2];
    if (head_.size() > 3) (text += seed) += head_[3];
    write_behind_head(out, request_, result.arrays, workers);
    longest_ = std::max(longest_, text.size());
    return std::move(text);
}

}  // namespace attn::cli
