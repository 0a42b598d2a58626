#include <algorithm>
#include <span>

#include "cli/batch/batch.hpp"
#include "cli/output/output.hpp"
#include "cli/question/operands.hpp"
#include "cli/request/request_builder.hpp"
#include "core/layer/layer.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {
namespace {

/// The limit of lines and answers in bytes. Above it, an answer may depend on available memory.
constexpr std::size_t longest_alike = std::size_t{1} << 20;

/// Splits the text after each key and drops the value there; empty if a key is missing or has
/// another value. Keys are found by their quotes, which are escaped inside strings.
std::vector<std::string> cut(
    const std::string& text,
    std::span<const std::pair<std::string_view, std::string_view>> members) {
    std::vector<std::string> parts;
    parts.reserve(members.size() + 1);
    std::size_t from = 0;
    for (const auto& [key, value] : members) {
        if (value.empty()) continue;
        const std::size_t found = text.find(key, from), at = found + key.size();
        if (found == std::string::npos || text.compare(at, value.size(), value) != 0) return {};
        parts.push_back(text.substr(from, at - from));
        from = at + value.size();
    }
    parts.push_back(text.substr(from));
    return parts;
}

}  // namespace

bool Prepared::may_be(const io::InputFile& line, const Request& request, const Plan& plan,
                      double memory) {
    const bool is_small =
        line.source->text.size() <= longest_alike && memory <= static_cast<double>(longest_alike);
    const OperandShapes& shapes = plan.operands;
    return is_small && request.operand_files.empty() && !request.example && !request.text &&
           request.settings.drawn_shape().empty() && !request.is_next_layer && !shapes.weights &&
           !shapes.norm && !shapes.has_token_ids;
}

Prepared::Prepared(const io::InputFile& line, Request request) : request_(std::move(request)) {
    // The values point into the text of a record, which is freed with it.
    for (auto& [key, location] : request_.locations) location.value = {};
    const io::JsonDocument& document = *line.document;
    const auto part_of = [&](const io::JsonMember& member) {
        if (member.key == "id") return Part::id;
        if (member.key == io::passed_on_key) return Part::meta;
        // `config` shows such a seed exactly as it is written here.
        if (member.key == "seed" && document.is_short_whole(member)) return Part::seed;
        const bool is_array = is_array_of(request_, document, member);
        return is_array ? Part::array : Part::setting;
    };
    members_.reserve(document.members().size());
    for (const io::JsonMember& member : document.members()) {
        const Part part = part_of(member);
        const std::string_view text = part == Part::setting ? document.text(member) : "";
        members_.push_back({member.key, part, std::string(text)});
    }
}

void Prepared::add(Plan plan, std::string asked) {
    constexpr std::size_t max_plans = 64;
    Planned planned{std::move(plan), std::move(asked), {}, 0};
    if (planned_.size() < max_plans)
        planned_.push_back(std::move(planned));
    else
        planned_[oldest_++ % max_plans] = std::move(planned);
}

bool Prepared::hold(const io::InputFile& line) const {
    const io::JsonDocument& document = *line.document;
    const auto is_like = [&](const Member& a, const io::JsonMember& b) {
        if (a.key != b.key) return false;
        switch (a.part) {
            case Part::id:
            case Part::meta: break;
            case Part::seed: return document.is_short_whole(b);
            case Part::array: return holds_elements(document, b);
            case Part::setting: return a.text == document.text(b);
        }
        return true;
    };
    return line.source->text.size() <= longest_alike &&
           std::equal(members_.begin(), members_.end(), document.members().begin(),
                      document.members().end(), is_like);
}

/// A meta may hold keys like those after it, so its slot is before theirs.
Prepared::Slots Prepared::slots(std::string_view seed, std::string_view draws) const {
    return {{{"\"id\":", request_.id},
             {"\"meta\":", request_.meta},
             {"\"id\":", request_.id},
             {"\"seed\":", seed},
             {"\"rng_consumed\":", draws}}};
}

/// The start of an answer, up to its arrays. `request_` has the record's id and meta.
std::string Prepared::head_of(Planned& planned, std::string_view seed, std::uint64_t draws) {
    if (request_.bare) return head_text(start_of_head(request_));
    const std::string drawn = draws == 0 ? "" : std::to_string(draws);
    std::vector<std::string>& head = planned.head;
    if (head.empty()) {
        request_.settings = planned.plan.config;
        request_.asked = planned.asked;
        std::string text = head_text(cli::head_of(request_, planned.plan, draws));
        head = cut(text, slots(seed, drawn));
        return text;
    }
    std::string text = head[0];
    std::size_t part = 0;
    for (const auto& [key, value] : slots(seed, drawn))
        if (!value.empty()) (text += value) += head[++part];
    return text;
}

std::optional<RecordOutcome> Prepared::answer(const io::InputFile& line, const std::string& id,
                                              const Runtime& runtime) {
    const io::JsonDocument& document = *line.document;
    if (request_.threads) runtime.pool.set_threads(*request_.threads);
    request_.document = line.source;
    const Input input{line, true, true};
    ReadOperands read = read_operands(request_, {.input = &input}, runtime.pool);
    Operands& operands = read.operands;
    const OperandShapes shapes = shapes_of(operands);
    const auto planned =
        std::ranges::find_if(planned_, [&](const Planned& p) { return p.plan.operands == shapes; });
    if (planned == planned_.end()) return {};
    if (read.may_be_nonfinite) check_finite_rows(request_, planned->plan, operands);
    request_.id = id;
    std::string_view seed;
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const io::JsonMember& member = document.members()[i];
        if (members_[i].part == Part::seed) seed = document.text(member);
        if (members_[i].part == Part::meta) request_.meta = document.copied(member);
        if (members_[i].part != Part::id) continue;
        std::string own = id_in(document, member);
        if (!own.empty()) request_.id = std::move(own);
    }
    if (!seed.empty()) planned->plan.config.seed = {*io::number_of_text<std::uint64_t>(seed)};
    Result result = compute(planned->plan, std::move(operands), runtime.pool);
    if (!request_.format->json)
        return RecordOutcome{.line = io::TextBuffer(head_of(*planned, seed, result.draws)),
                             .packed = pack(request_, std::move(result.arrays), runtime.pool)};
    io::BufferOutput out;
    out.text().reserve(planned->longest + planned->longest / 8);
    out << head_of(*planned, seed, result.draws);
    write_after_head(out, request_, result.arrays, runtime.pool);
    planned->longest = std::max(planned->longest, out.text().size());
    return RecordOutcome{std::move(out.text())};
}

}  // namespace attn::cli
