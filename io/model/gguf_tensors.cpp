#include "io/model/gguf_architectures.hpp"

#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/model/find_layer.hpp"
#include "io/text/number_text.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

float negated(float stored) {
    return -stored;
}

std::string with_part(std::string text, std::string_view part, std::string_view by) {
    const std::size_t at = text.find(part);
    return at == std::string::npos ? text : text.replace(at, part.size(), by);
}

/// The published name of one tensor, empty if it is read in another way, and what the published
/// tensor is, given the one in the file.
struct TensorMatch {
    std::string name, form;
};

class TensorReader {
public:
    explicit TensorReader(const GgufFacts& facts) : facts_(facts) {}

    ArrayFile read() {
        for (const StoredArray& array : facts_.file().arrays) add(array);
        result_.name = facts_.file().name;
        result_.gguf_metadata = facts_.file().gguf_metadata;
        result_.index_names();
        return std::move(result_);
    }

private:
    /// The number of the layer in "blk.3.attn_q.weight", as text; empty if it has none.
    static std::string layer_of(const std::string& name) {
        constexpr std::string_view start = "blk.";
        if (!name.starts_with(start)) return {};
        return name.substr(start.size(), name.find('.', start.size()) - start.size());
    }

    std::optional<TensorMatch> match(const StoredArray& array) const {
        const std::string layer = layer_of(array.name);
        const std::string name =
            layer.empty() ? array.name : with_part(array.name, "." + layer + ".", ".#.");
        const auto look = [&](const std::string& stored,
                              const std::string& ending) -> std::optional<TensorMatch> {
            const json* const row = facts_.find("tensors", stored);
            if (row == nullptr) return std::nullopt;
            const std::string published = row->is_array() ? row->at(0) : *row;
            return TensorMatch{published.empty() ? "" : with_part(published, "#", layer) + ending,
                               row->is_array() ? row->at(1) : json("same")};
        };
        if (auto found = look(name, "")) return found;
        for (const std::string ending : {".weight", ".bias"})
            if (name.ends_with(ending))
                return look(name.substr(0, name.size() - ending.size()), ending);
        return std::nullopt;
    }

    void check_layer(const StoredArray& array) const {
        const std::string text = layer_of(array.name);
        if (text.empty()) return;
        const auto layer = number_of_text<std::uint64_t>(text);
        if (!layer || std::to_string(*layer) != text || *layer >= facts_.layers())
            throw Error(ErrorKind::input, array.location(), "is of block ",
                        one_line(shortened(text)), "; expected 0 to ", facts_.layers() - 1,
                        ", by block_count");
    }

    void add(const StoredArray& array) {
        const std::optional<TensorMatch> found = match(array);
        if (!found)
            throw Error(ErrorKind::input, array.location(), "is not a tensor of the architecture ",
                        facts_.architecture(),
                        ", and would be ignored; expected a file without it");
        check_layer(array);
        add(array, *found);
    }

    void add(const StoredArray& array, const TensorMatch& found) {
        if (found.name.empty()) return;
        if (!array.type) return put(array, found.name);  // reading it names the type
        if (array.elements() == 0) refuse_shape(array, "at least one element");
        const auto& [name, form] = found;
        if (form == "same") return keep(array, name);
        if (form == "one_by_one") return add_parts(array, name);
        if (form == "gate_by_turns") return add_by_turns(array, name);
        if (form == "transposed") return add_transposed(array, name);
        if (form == "of_groups")
            return add_groups(array, name, facts_.key_heads(), facts_.heads() / facts_.key_heads());
        if (form == "of_heads") return add_groups(array, name, facts_.heads(), 1);
        if (form == "one_row") return add_row(array, name);
        if (form == "value_columns") return add_value_columns(array, name);
        add_value_heads(array, name, form);
    }

    /// Projections of queries and keys may differ by the flags of the architecture.
    void keep(const StoredArray& array, const std::string& name) {
        const bool is_projection = name.find(".self_attn.q_proj.") != std::string::npos ||
                                   name.find(".self_attn.k_proj.") != std::string::npos;
        if (facts_.is("pairs") && is_projection) return add_rotary(array, name);
        put(array, name);
    }

    void put(StoredArray array, const std::string& name) {
        array.name = name;
        result_.arrays.push_back(std::move(array));
    }

    void put(StoredArray made, const StoredArray& stored) {
        made.size = stored.size;
        result_.arrays.push_back(std::move(made));
    }

    /// Row i of the result is row source(i) of a matrix, or of a vector.
    void add_rows(const StoredArray& array, const std::string& name, std::vector<std::size_t> shape,
                  std::function<std::size_t(std::size_t)> source, float (*value)(float) = nullptr) {
        Rearrangement parts{{array}};
        parts.value = value;
        if (array.shape.size() == 1) {
            for (std::size_t i = 0; i < array.shape[0]; ++i) parts.columns.push_back(source(i));
        } else {
            parts.source = [source = std::move(source)](std::size_t row) {
                return RowSource{0, source(row)};
            };
        }
        put(rearranged(name, std::move(shape), std::move(parts)), array);
    }

    void check_rows(const StoredArray& array, std::size_t rows) const {
        const std::size_t rank = array.shape.size();
        if ((rank != 1 && rank != 2) || array.shape[0] != rows)
            refuse_shape(array, rows, " rows, by the keys of ", facts_.architecture());
    }

    /// Rows of a head in halves, stored by turns.
    void add_rotary(const StoredArray& array, const std::string& name) {
        const bool is_query = name.find(".q_proj.") != std::string::npos;
        const std::size_t heads = is_query ? facts_.heads() : facts_.key_heads(),
                          width = facts_.head_dim(), half = width / 2;
        check_rows(array, heads * width);
        if (width % 2 != 0) refuse_shape(array, "an even number of rows for each head");
        add_rows(array, name, array.shape, [width, half](std::size_t row) {
            const std::size_t head = row / width, k = row % width;
            return head * width + (k < half ? 2 * k : 2 * (k - half) + 1);
        });
    }

    /// Falcon's groups of heads, or each head of Bloom. The result has, for each group, its
    /// queries, its key and its value; the file has all queries, all keys, all values.
    void add_groups(const StoredArray& array, const std::string& name, std::size_t groups,
                    std::size_t queries) {
        const std::size_t width = facts_.head_dim(), heads = groups * queries;
        check_rows(array, (heads + 2 * groups) * width);
        add_rows(array, name, array.shape, [=](std::size_t row) {
            const std::size_t slot = row / width % (queries + 2),
                              group = row / width / (queries + 2);
            const std::size_t head = slot < queries    ? group * queries + slot
                                     : slot == queries ? heads + group
                                                       : heads + groups + group;
            return head * width + row % width;
        });
    }

    /// '@' is the number of a part: the first axis of the stored tensor.
    void add_parts(const StoredArray& array, const std::string& name) {
        if (array.shape.size() < 2) refuse_shape(array, "rank 2 or 3");
        for (std::size_t i = 0; i < array.shape[0]; ++i)
            result_.arrays.push_back(part_of(with_part(name, "@", std::to_string(i)), array, i));
    }

    /// Parts of a row by turns with those of the tensor "up" in place of "gate".
    void add_by_turns(const StoredArray& gate, const std::string& name) {
        const std::string other = with_part(gate.name, "_gate_", "_up_");
        const StoredArray* up = facts_.file().find(other);
        const std::size_t rank = gate.shape.size();
        if (up == nullptr || up->shape != gate.shape || (rank != 2 && rank != 3))
            refuse_shape(gate, "a tensor ", one_line(shortened(other)), " of the same shape");
        const std::size_t run = rank == 3 ? gate.shape[2] : 1;
        std::vector<std::size_t> shape = gate.shape;
        shape[1] *= 2;
        result_.arrays.push_back(by_turns(name, std::move(shape), gate, *up, run));
    }

    void add_transposed(const StoredArray& array, const std::string& name) {
        if (array.shape.size() != 2) return keep(array, name);  // a bias
        put(transposed(name, array), array);
    }

    /// (1, n), stored as (n).
    void add_row(const StoredArray& array, const std::string& name) {
        keep(array, name);
        std::vector<std::size_t>& shape = result_.arrays.back().shape;
        if (shape.size() == 1) shape.insert(shape.begin(), 1);
    }

    /// The value heads of a layer of linear attention: those of the first key head, then those of
    /// the second. The file has the first value head of each key head, then the second of each.
    std::function<std::size_t(std::size_t)> value_rows(std::size_t width,
                                                       std::size_t before) const {
        const std::size_t keys = facts_.whole("ssm.group_count"),
                          each = facts_.whole("ssm.time_step_rank") / keys;
        return [=](std::size_t row) {
            if (row < before) return row;
            const std::size_t head = (row - before) / width, key = head / each;
            return before + (head % each * keys + key) * width + (row - before) % width;
        };
    }

    std::size_t value_heads() const {
        const std::size_t heads = facts_.whole("ssm.time_step_rank"),
                          keys = facts_.whole("ssm.group_count");
        if (heads % keys != 0)
            facts_.fail("ssm.time_step_rank", std::to_string(heads),
                        "a multiple of ssm.group_count, " + std::to_string(keys));
        return heads;
    }

    /// "value_heads": rows of value heads in the order of their key heads; "mixed_heads": the same
    /// after the rows of queries and keys; "mixed_channels": the same of shape (channels, 1,
    /// width); "decays": value heads, stored as -exp(A_log), of which exp(A_log) is left, whose
    /// logarithm float32 would round.
    void add_value_heads(const StoredArray& array, const std::string& name,
                         const std::string& form) {
        const std::size_t heads = value_heads(), inner = facts_.whole("ssm.inner_size");
        const bool is_mixed = form == "mixed_heads" || form == "mixed_channels";
        const std::size_t before =
            is_mixed ? 2 * facts_.whole("ssm.group_count") * facts_.whole("ssm.state_size") : 0;
        // Projections of one number for each head, or of all its values.
        const bool is_wide = is_mixed || (!array.shape.empty() && array.shape[0] != heads);
        const std::size_t width = is_wide ? inner / heads : 1;
        check_rows(array, before + heads * width);
        std::vector<std::size_t> shape = array.shape;
        if (form == "mixed_channels") shape.insert(shape.end() - 1, 1);
        add_rows(array, name, std::move(shape), value_rows(width, before),
                 form == "decays" ? negated : nullptr);
    }

    void add_value_columns(const StoredArray& array, const std::string& name) {
        const std::size_t heads = value_heads(), inner = facts_.whole("ssm.inner_size");
        if (array.shape.size() != 2 || array.shape[1] != inner || inner % heads != 0)
            refuse_shape(array, inner, " columns, by ssm.inner_size");
        Rearrangement parts{{array}};
        const auto source = value_rows(inner / heads, 0);
        for (std::size_t i = 0; i < inner; ++i) parts.columns.push_back(source(i));
        put(rearranged(name, array.shape, std::move(parts)), array);
    }

    const GgufFacts& facts_;
    ArrayFile result_;
};

}  // namespace

ArrayFile published_tensors(const GgufFacts& facts) {
    return TensorReader(facts).read();
}

}  // namespace attn::io
