// Dropout, and where random numbers come from in the stream of their generator.
#include "cli/explain/explanation.hpp"
#include "core/operator/cuda_dropout.hpp"
#include "io/text/number_text.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {
namespace {

/// Elements of an array whose draws are shown.
constexpr std::size_t max_elements = 2;

/// The query's row of nn.Embedding(vocab_size, embed_dim), which a separate generator draws.
DrawnArray drawn_row(const Explanation& e) {
    const std::uint64_t columns = *e.request.embed_dim;
    const auto id = static_cast<std::uint64_t>(e.arrays.row("token_ids")[0]);
    const unsigned words = e.settings().dtype == NumberType::float64 ? 2 : 1;
    return {"inputs", 0, id * columns, columns, columns, *e.request.vocab_size * columns, 0, words};
}

/// Where a GPU draws the decision on each key.
void show_gpu_draws(HeadView& h) {
    const Dropout& dropout = h.e.draws.dropout;
    const CudaDropout draws(dropout, h.plan.batch, h.plan.heads, h.plan.kv_len);
    const std::size_t q = h.e.query();
    const bool is_bytes = draws.draws_bytes();
    io::Cells cells{{"key", "subsequence", "counter", "word"}};
    if (is_bytes) cells[0].emplace_back("byte");
    cells[0].insert(cells[0].end(), {is_bytes ? "value" : "u", "keeps"});
    for (const std::size_t k : h.shown) {
        const CudaDropout::At at{h.e.batch, h.head, q, k};
        const PhiloxRun run = draws.run(at);
        const unsigned word = draws.word_of(at, run), byte = CudaDropout::byte_of(q, k);
        const std::uint32_t bits = run.words()[word];
        std::vector<std::string> row{h.e.key_label(k), std::to_string(run.subsequence()),
                                     std::to_string(run.offset()), std::to_string(word)};
        if (is_bytes) row.push_back(std::to_string(byte));
        row.push_back(is_bytes ? std::to_string(bits >> (8 * byte) & 0xff)
                               : h.e.format.number(double{cuda_uniform(bits)}));
        row.emplace_back(draws.keeps(at) ? "yes" : "no");
        cells.push_back(std::move(row));
    }
    h.say("dropout_draws",
          {{"is_bytes", is_bytes},
           {"is_efficient", dropout.kernel == DropoutKernel::efficient},
           {"KERNEL", dropout.kernel ? "The kernel " + std::string(name_of(dropout_kernel_names,
                                                                           *dropout.kernel))
                                     : "F.dropout"},
           {"KEY", dropout.cuda->seed()},
           {"START", dropout.cuda->offset()},
           {"LIMIT", std::to_string(draws.last())}});
    h.e.page->table({.cells = cells, .may_split = true});
}

}  // namespace

void write_dropout(HeadView& h) {
    const Settings& s = h.e.settings();
    if (s.dropout == 0) return;
    HeadView::NamedRows rows;
    for (const char* name : {"weights_before_dropout", "dropout_mask", "attention_weights"})
        if (h.has(name)) rows.emplace_back(name, h.row(name));
    const std::string dropped =
        h.has("dropout_mask") ? std::to_string(std::ranges::count(h.row("dropout_mask"), 0.0)) : "";
    h.say("dropout", {{"keeps_some", s.dropout < 1},
                      {"own_seed", s.dropout_seed.has_value()},
                      {"continues", s.continues_stream()},
                      {"on_cpu", s.dropout_stream != DropoutStream::cuda},
                      {"P", io::number_text(s.dropout)},
                      {"DROPPED", dropped},
                      {"KEPT", h.e.format.number(1 / (1 - s.dropout))},
                      {"STREAM", name_of(dropout_stream_names, s.dropout_stream)}});
    h.show_with_bars(rows);
    if (h.e.draws.dropout.cuda && s.dropout < 1) show_gpu_draws(h);
}

void write_draws(Explanation& e) {
    const Settings& s = e.settings();
    const bool is_cuda = s.rng == Rng::cuda, draws_row = is_cuda && e.request.text;
    std::vector<DrawnArray> drawn = e.draws.arrays;
    if (draws_row) drawn.insert(drawn.begin(), drawn_row(e));
    io::Cells cells{{"element", "number", "offset", "subsequence", "counter", "word"}};
    std::string firsts;
    for (const DrawnArray& a : drawn) {
        const NamedArray* const array = e.arrays.find(a.name);
        const bool is_parameter = a.name[1] == '_', is_row = draws_row && !is_parameter;
        if (array == nullptr || (e.request.corners && !is_parameter)) continue;
        const bool has_groups = is_parameter && array->axes.front() == "heads";
        if (has_groups && (a.group < e.first_head || a.group >= e.end_head)) continue;
        const std::vector<std::size_t> shape = io::shape_of(*array);
        std::string name = a.name;
        std::size_t row = 0;
        for (std::size_t axis = 0; axis + 1 < shape.size(); ++axis) {
            const std::string_view of = array->axes[axis];
            const std::size_t at = of == "heads" ? a.group : is_row ? e.query() : 0;
            name += of == "heads" ? "[head " : of == "batch" ? "[batch " : "[";
            name += std::to_string(at) + "]";
            row = row * shape[axis] + at;
        }
        (firsts += firsts.empty() ? "" : ", ") += name.substr(0, name.find("[0]")) + " ";
        firsts += std::to_string(a.position);
        for (std::size_t i = 0; is_cuda && i < std::min(shape.back(), max_elements); ++i) {
            cells.push_back({name + "[" + std::to_string(i) + "]",
                             e.format.number(element(*array, row * shape.back() + i)),
                             std::to_string(a.position), "-", "-", "-"});
            if (a.words == 0) continue;
            const CudaGenerator kernel(0, s.gpu(), a.position);  // places follow from no seed
            const PhiloxRun run = kernel.run(a.index(i), a.count, a.words);
            cells.back()[3] = std::to_string(run.subsequence());
            cells.back()[4] = std::to_string(run.offset());
            cells.back()[5] = std::to_string(CudaGenerator::word_of(run, a.words));
        }
    }
    if (firsts.empty()) return;
    e.say("draws", {{"is_cuda", is_cuda},
                    {"redraws", s.init == Init::trunc_normal && e.draws_parameters()},
                    {"is_double", s.dtype == NumberType::float64},
                    {"FIRSTS", firsts},
                    {"KEY", s.seed.bits},
                    {"ROW_KEY", draws_row ? std::to_string(e.request.embed_seed->bits) : ""}});
    if (is_cuda) e.page->table({.cells = cells, .may_split = true});
}

}  // namespace attn::cli
