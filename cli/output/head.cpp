#include "cli/output/output.hpp"
#include "core/layer/layer.hpp"
#include "core/layer/mask_rows.hpp"
#include "io/file/source.hpp"
#include "io/text/json_text.hpp"
#include "io/text/utf8.hpp"

namespace attn::cli {

namespace {

/// The shapes of the operands that a plan was made from, as a JSON object. Weights have shape
/// (groups, d_out, d_in) and biases (groups, d_out), regardless of how they are stored.
std::string operands_json(const OperandShapes& operands) {
    std::string text = "{";
    for (const OperandRow& row : operand_rows)
        if (!operands[row].empty()) io::append_member(text, row.key, operands[row]);
    if (operands.has_token_ids)
        io::append_member(text, "token_ids",
                          Shape(operands["inputs"].end() - 2, operands["inputs"].end() - 1));
    if (operands.norm) io::append_member(text, "norm", Shape{*operands.norm});
    if (operands.weights) {
        for_each_projection(*operands.weights, [&](const std::string& name, const auto& p) {
            io::append_member(text, "W_" + name, Shape{p.groups, p.d_out, p.d_in});
            if (p.has_bias) io::append_member(text, "b_" + name, Shape{p.groups, p.d_out});
        });
        if (operands.weights->has_head_norms) io::append_member(text, "head_norms", true);
    }
    return text += '}';
}

std::string axes_json(const Plan& plan) {
    std::string text = "{";
    plan.emit.for_each([&](ArrayId array) {
        if (array.row().from != From::trace && plan.has(array.row()))
            io::append_member(text, array.row().name, plan.axes_of(array));
    });
    return text += '}';
}

}  // namespace

std::string shapes_json(const Shapes& s) {
    std::string text = "{";
    for (const auto& [name, size] : {std::pair("batch", s.batch),
                                     {"heads", s.heads},
                                     {"kv_heads", s.kv_heads},
                                     {"q_len", s.q_len},
                                     {"kv_len", s.kv_len},
                                     {"d_in", s.d_in},
                                     {"d_k", s.d_k},
                                     {"d_v", s.d_v},
                                     {"d_out", s.d_out}})
        io::append_member(text, name, size);
    return text += '}';
}

std::string layout_json(const Plan& plan) {
    return layout_json(plan, axes_json(plan));
}

std::string layout_json(const Plan& plan, const std::string& axes) {
    std::vector<std::string_view> masks, boolean;
    for (const MaskRow& row : mask_rows())
        if (row.is_active(plan)) masks.push_back(row.key);
    for (const OperandRow& row : operand_rows)
        if (plan.operands.is_boolean[row]) boolean.emplace_back(row.key);
    std::string text = "{";
    io::append_member(text, "queries", plan.q_len);
    io::append_member(text, "first_query", plan.first_query);
    if (!plan.shown.heads.empty()) io::append_member(text, "heads", plan.shown.heads);
    io::append_member(text, "past_len", plan.past_len);
    io::append_member(text, "offset", plan.offset.values());
    io::append_member(text, "masks", masks);
    io::append_member(text, "boolean", boolean);
    io::append_member(text, "operands", io::JsonText{operands_json(plan.operands)});
    io::append_member(text, "axes", io::JsonText{axes});
    return text += '}';
}

HeadMembers start_of_head(const Request& request) {
    // The arrays of a batch's packed answers are elsewhere: its lines are those of an index.
    const bool is_index = request.of_batch && !request.format->json;
    HeadMembers head;
    head.reserve(10);
    if (!request.bare)
        head.emplace_back("schema", io::value_text(is_index ? schemas::index : schemas::result));
    if (!request.id.empty()) head.emplace_back("id", request.id);
    if (!request.meta.empty()) head.emplace_back("meta", request.meta);
    if (!request.bare && request.num_truncated_tokens != 0)
        head.emplace_back("num_truncated_tokens", std::to_string(request.num_truncated_tokens));
    return head;
}

HeadMembers head_of(const Request& request, const Plan& plan, std::uint64_t draws) {
    HeadMembers head = start_of_head(request);
    if (request.bare) return head;
    head.emplace_back("mode", io::value_text(row_of(request.settings.mode).name));
    if (!request.tokens.empty()) head.emplace_back("tokens", io::value_text(request.tokens));
    if (!request.context_tokens.empty())
        head.emplace_back("context_tokens", io::value_text(request.context_tokens));
    head.emplace_back("config", config_of(request));
    if (!request.asked.empty()) head.emplace_back("asked", request.asked);
    head.emplace_back("shapes", shapes_json(plan.shapes()));
    if (draws != 0) head.emplace_back("rng_consumed", std::to_string(draws));
    head.emplace_back("layout", layout_json(plan));
    return head;
}

namespace {

constexpr std::string_view space_mark = "\u2581";

/// Ġ is also an ordinary letter (of Maltese), so WordPiece and SentencePiece vocabularies are
/// recognised by their own markers.
bool is_byte_level(const std::vector<std::string>& pieces) {
    return std::ranges::none_of(pieces, [](const std::string& piece) {
        return piece.starts_with("##") || piece == "[CLS]" ||
               piece.find(space_mark) != std::string::npos;
    });
}

}  // namespace

std::vector<std::string> readable_pieces(std::vector<std::string> pieces) {
    const bool has_bytes = is_byte_level(pieces);
    for (std::string& piece : pieces) {
        if (has_bytes) {
            const std::string text = io::from_byte_alphabet(piece);
            if (io::find_invalid_utf8(text) == std::string::npos) piece = text;
        }
        for (std::size_t at = 0; (at = piece.find(space_mark, at)) != std::string::npos;)
            piece.replace(at, space_mark.size(), " ");
    }
    return pieces;
}

std::vector<std::string> ids_as_labels(const std::vector<std::uint64_t>& ids) {
    std::vector<std::string> labels;
    labels.reserve(ids.size());
    for (const std::uint64_t id : ids) labels.push_back(std::to_string(id));
    return labels;
}

}  // namespace attn::cli
