// Names of tensors that are given, and those that a file's own may be.
#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "core/base/error.hpp"
#include "core/model/attention_part.hpp"
#include "io/file/source.hpp"
#include "io/model/find_layer.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

constexpr std::array<std::string_view, 5> parts_of_layer{"query", "key", "value", "out", "qkv"};
constexpr std::size_t part_out = 3, part_qkv = 4;

template <class... Parts>
[[noreturn]] void refuse_names(const Parts&... message) {
    throw SettingError(ErrorKind::usage, "weight_names", message...);
}

/// The endings of a weight's name and of its bias's.
constexpr std::pair<std::string_view, std::string_view> endings[]{
    {".weight", ".bias"}, {"/kernel", "/bias"}, {".kernel", ".bias"}, {"/kernel:0", "/bias:0"}};

/// "a.q" of "a.q.weight", and the ending of the bias, or nothing.
std::pair<std::string_view, std::string_view> stem_of(std::string_view name) {
    for (const auto& [weight, bias] : endings)
        if (name.ends_with(weight)) return {name.substr(0, name.size() - weight.size()), bias};
    return {name, {}};
}

/// "a.b." of "a.b.q".
std::string_view module_of(std::string_view stem) {
    return stem.substr(0, stem.find_last_of("./") + 1);
}

/// "self_attn.to_out" of "self_attn.to_out.0".
std::string_view without_number(std::string_view stem) {
    const std::size_t end = stem.find_last_not_of("0123456789");
    const bool ends = end != std::string_view::npos && end + 1 < stem.size() && stem[end] == '.';
    return ends ? stem.substr(0, end) : stem;
}

/// The part that the last word of a name is, or none: "q_proj" is query, "Wo" out.
std::optional<std::size_t> part_named(std::string_view stem) {
    static constexpr std::string_view words[]{" q qs query queries ", " k ks key keys ",
                                              " v vs value values ",
                                              " o out output dense fc proj "};
    std::string word(stem.substr(module_of(stem).size()));
    for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (word.find("qkv") != word.npos || word.find("query_key") != word.npos) return part_qkv;
    if (word.size() == 2 && word[0] == 'w') word.erase(0, 1);
    for (std::size_t part = 0; part < std::size(words); ++part)
        for (const std::string_view piece : split_text(word, '_'))
            if (words[part].find(" " + std::string(piece) + " ") != std::string_view::npos)
                return part;
    return {};
}

std::optional<std::size_t> part_named(const StoredArray& array) {
    return part_named(without_number(stem_of(array.name).first));
}

using LikelyParts = std::map<std::size_t, const StoredArray*>;
using Modules = std::map<std::string_view, std::vector<const StoredArray*>>;

/// The matrices of each module whose names --weight-names can give.
Modules modules_of(const ArrayFile& file, const std::string& prefix) {
    Modules modules;
    for (const StoredArray& array : file.arrays)
        if (const std::size_t rank = shape_of_weight(array).size();
            (rank == 2 || rank == 3) && array.name.starts_with(prefix) &&
            array.name.find_first_of(",=' \t\n\"") == std::string::npos)
            modules[module_of(without_number(stem_of(array.name).first))].push_back(&array);
    return modules;
}

/// The output projection that is not in the module of the others, but next to it, or in a module
/// next to it: "attention.output.dense" of "attention.self."; null: none. `by_name`: the name of
/// that module must say so.
const StoredArray* out_beside(const Modules& modules, std::string_view module, bool by_name) {
    if (module.empty()) return nullptr;
    const std::string_view above = module_of(module.substr(0, module.size() - 1));
    for (const auto& [other, matrices] : modules) {
        if (other == module || !other.starts_with(above)) continue;
        const std::string_view own = other.substr(0, other.size() - !other.empty());
        const bool is_above = other == above,
                   is_next = module_of(own) == above && (!by_name || part_named(own) == part_out);
        for (const StoredArray* matrix : matrices)
            if ((is_above || is_next) && part_named(*matrix) == part_out) return matrix;
    }
    return nullptr;
}

/// The parts that matrices may be, by their names, then in order; a joined one also by its shape.
/// Empty for fewer than a layer has.
LikelyParts likely_parts(const std::vector<const StoredArray*>& matrices) {
    LikelyParts guess;
    std::vector<const StoredArray*> others;
    for (const StoredArray* matrix : matrices) {
        const auto shape = shape_of_weight(*matrix);
        const std::size_t rows = shape.front(), columns = shape.back();
        auto part = part_named(*matrix);
        if (part.value_or(part_out) == part_out && (rows == 3 * columns || columns == 3 * rows))
            part = part_qkv;
        if (!part || !guess.emplace(*part, matrix).second) others.push_back(matrix);
    }
    const bool is_joined = guess.contains(part_qkv);
    if (is_joined) std::erase_if(guess, [](const auto& item) { return item.first < part_out; });
    auto next = others.begin();
    for (std::size_t part = is_joined ? part_out : 0; part <= part_out; ++part)
        if (next != others.end() && guess.emplace(part, *next).second) ++next;
    const bool has_all = guess.size() - guess.count(part_out) == part_out;
    return is_joined || has_all ? guess : LikelyParts();
}

}  // namespace

Family family_of_names(const Family* base, const WeightNames& names) {
    Family family;
    family.name = "--weight-names";
    family.is_plain = family.takes_mask = true;
    family.layers.resize(1);
    family.layers.front().is_open = family.layers.front().shows_in_out = true;
    if (base != nullptr) family = *base;
    family.of_class = family.is_given = true;
    family.norm = {};
    family.embedding = {};
    family.types.clear();
    family.layers.resize(1);
    LayerNames& form = family.layers.front();
    form.layer = {};
    form.is_wrapper = form.lacks_bias = false;
    form.some_biases = true;
    ProjectionNames qkv;
    ProjectionNames* const parts[] = {&form.query, &form.key, &form.value, &form.out, &qkv};
    for (ProjectionNames* part : parts) *part = {};
    for (const auto& [theirs, ours] : names) {
        const bool is_bias = ours.ends_with(".bias");
        const auto part =
            std::ranges::find(parts_of_layer, is_bias ? ours.substr(0, ours.size() - 5) : ours);
        if (part == parts_of_layer.end() || theirs.empty())
            refuse_names(one_line(shortened(theirs + (theirs.empty() ? "" : "=") + ours)),
                         "; expected THEIRS=OURS with query, key, value, qkv or out as OURS, or "
                         "a bias, such as query.bias");
        ProjectionNames& named = *parts[part - parts_of_layer.begin()];
        (is_bias ? named.bias : named.weight) = theirs;
        named.needs_bias = named.needs_bias || is_bias;
    }
    const bool is_joined = !qkv.weight.empty();
    for (std::size_t part = 0; part <= part_qkv; ++part) {
        ProjectionNames& named = *parts[part];
        const bool is_separate = part < part_out, has_weight = !named.weight.empty();
        const bool is_needed =
            part == part_out ? form.head_axis != HeadAxis::none : is_separate && !is_joined;
        const bool is_twice = is_joined && is_separate && (has_weight || named.needs_bias);
        if (is_twice || (!has_weight && (named.needs_bias || is_needed)))
            refuse_names(is_twice ? "qkv and " : "no weight for ", parts_of_layer[part],
                         "; expected query, key and value, or qkv; and out, if there is one");
        const auto [stem, bias] = stem_of(named.weight);
        if (named.bias.empty() && !bias.empty()) named.bias = concat(stem, bias);
    }
    if (is_joined) form.query = qkv;
    form.shows_in_out = form.shows_in_out && is_joined;
    form.asks_joined = is_joined && form.joined == JoinedHeads::separate;
    if (!is_joined || form.asks_joined)
        form.joined = is_joined ? JoinedHeads::parts : JoinedHeads::separate;
    form.needs_out = !form.out.weight.empty();
    if (base == nullptr) form.in_out = !form.query.weight.ends_with("weight");
    return family;
}

const StoredArray* likely_out(const ArrayFile& file, const std::string& module) {
    return out_beside(modules_of(file, ""), module, true);
}

std::string likely_weight_names(const ArrayFile& file, const std::string& prefix) {
    const Modules modules = modules_of(file, prefix);
    LikelyParts best;
    std::string_view best_module;
    std::ptrdiff_t most = -1;
    for (const auto& [module, matrices] : modules) {
        LikelyParts guess = likely_parts(matrices);
        const std::ptrdiff_t named = std::ranges::count_if(
            guess, [](const auto& item) { return part_named(*item.second) == item.first; });
        if (guess.empty() || named <= most) continue;
        if (const StoredArray* out = out_beside(modules, module, false))
            guess.emplace(part_out, out);
        most = named;
        best = std::move(guess);
        best_module = module;
    }
    std::size_t cut = prefix.size();  // after the number of a layer, which --layer gives
    for (std::size_t dot = cut; (dot = best_module.find('.', dot)) != best_module.npos; ++dot)
        if (without_number(best_module.substr(0, dot)).size() != dot) cut = dot + 1;
    for (const auto& [part, matrix] : best)
        if (!matrix->name.starts_with(best_module.substr(0, cut))) cut = prefix.size();
    std::string words;
    const auto add = [&](const std::string& theirs, std::string_view ours) {
        words += concat(words.empty() ? "--weight-names " : ",", theirs.substr(cut), "=", ours);
    };
    for (const auto& [part, matrix] : best) {
        add(matrix->name, parts_of_layer[part]);
        std::string bias = matrix->name;  // "bq" of "Wq": of other names it need not be said
        const std::size_t letter = module_of(bias).size();
        if (!stem_of(bias).second.empty() || (bias[letter] != 'W' && bias[letter] != 'w')) continue;
        bias[letter] = 'b';
        if (file.find(bias) != nullptr) add(bias, concat(parts_of_layer[part], ".bias"));
    }
    return words + (best.contains(part_qkv) ? " with --qkv-layout parts or heads" : "");
}

}  // namespace attn::io
