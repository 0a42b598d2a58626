#include <span>
#include <variant>

#include "cli/model/model_options.hpp"
#include "cli/scan/scan.hpp"
#include "core/base/error.hpp"
#include "core/scan/head_statistics.hpp"

namespace attn::cli {
namespace {

/// Besides its id and meta, a record has what a text is.
void check_keys(const Args& args) {
    for (const FlagValue& flag : args.flags) {
        const std::string_view key = flag.option->key;
        const bool is_of_text =
            find_option(model_options, key) != nullptr && key != "layers" && key != "generate";
        if (flag.option == &config_id || is_of_text || key == "token_ids") continue;
        throw Error(ErrorKind::usage, flag.location,
                    "a record of a scan is a text; expected text or token_ids, and flags for what "
                    "all texts share");
    }
}

/// The sums of one text while its layers run.
class TextRun {
public:
    TextRun(const ScanRequest& request, const ModelPlan& plan, ModelFiles& files,
            ThreadPool& workers)
        : request_(request), plan_(plan), files_(files), workers_(workers) {}

    void take(const NamedArray& array) {
        constexpr std::string_view name = "attention_weights";
        if (array.name == "cross_attention_weights" || !array.name.ends_with(name)) return;
        std::string part = array.name.substr(0, array.name.size() - name.size());
        if (!part.empty()) part.pop_back();  // the underscore
        std::visit(
            [&]<class T>(const Array<T>& weights) {
                if constexpr (!std::is_integral_v<T>) add(LayerKey(part, *array.layer), weights);
            },
            array.values);
    }

    TextSums finish() {
        if (sums_.layers.empty())
            throw Error(ErrorKind::unsupported, request_.model,
                        "no layer that is asked for has softmax attention; expected one that has");
        for (const auto& [part, tokens] : tokens_) sums_.tokens += tokens.size();
        sums_.truncated_texts = plan_.request().num_truncated_tokens != 0;
        return std::move(sums_);
    }

private:
    template <class T>
    void add(const LayerKey& key, const Array<T>& weights) {
        const std::vector<std::size_t> shape = weights.shape();
        const std::size_t n = shape.back(), cells = n * n, heads = weights.size() / cells;
        const ScannedTokens& tokens = tokens_of(key.first, n);
        const std::size_t count = request_.statistics.size();
        LayerSums& layer = sums_.layers[key];
        layer.heads = heads;
        layer.sums.resize(heads * count);
        share(&workers_, heads, [&](std::size_t head) {
            SumsOfHead sums(head_statistics().size(), nullptr);
            for (std::size_t i = 0; i < count; ++i)
                sums[request_.statistics[i]] = &layer.sums[head * count + i];
            add_statistics(std::span<const T>(weights.data() + head * cells, cells), tokens, sums,
                           head_location(key, head));
        });
    }

    const ScannedTokens& tokens_of(const std::string& part, std::size_t n) {
        const auto known = tokens_.find(part);
        if (known != tokens_.end()) return known->second;
        const ModelQuestion& question = plan_.question();
        const bool is_decoder = part == "decoder";
        std::vector<std::uint64_t> ids = is_decoder ? question.decoder_ids : question.input.ids;
        if (ids.size() != n) ids.clear();
        if (request_.skips_special && ids.empty())
            throw Error(ErrorKind::usage, "--skip-special",
                        "requires token ids, which the record lacks; expected text or token_ids in "
                        "it, or no such flag");
        for (const std::size_t index : request_.statistics)
            if (const HeadStatistic& statistic = head_statistics()[index];
                ids.empty() && statistic.needs_ids)
                throw Error(ErrorKind::usage, "--stats " + std::string(statistic.name),
                            "requires token ids, which the record lacks; expected text or "
                            "token_ids in it, or other statistics");
        std::vector<bool> counted = is_decoder ? std::vector<bool>() : plan_.valid_tokens();
        if (counted.size() != n) counted.assign(n, true);
        if (request_.skips_special)
            for (std::size_t t = 0; t < ids.size(); ++t)
                if (files_.tokenizer().is_special(static_cast<std::uint32_t>(ids[t])))
                    counted[t] = false;
        return tokens_.try_emplace(part, n, std::move(ids), std::move(counted)).first->second;
    }

    const ScanRequest& request_;
    const ModelPlan& plan_;
    ModelFiles& files_;
    ThreadPool& workers_;
    std::map<std::string, ScannedTokens> tokens_;  // of each part
    TextSums sums_;
};

}  // namespace

ModelAsked TextScanner::ask(const Record& record) const {
    std::optional<io::InputFile> line = record.open_line();
    io::InputFile file = line ? std::move(*line)
                              : io::open_input_file(record.file, nullptr, request_.defaults.access);
    if (!file.holds_object())
        throw Error(ErrorKind::input, file.location,
                    "no object; expected a text, as in {\"text\": \"Life is short\"}");
    ModelAsked asked =
        model_of_record(request_.defaults, *request_.program, std::move(file), request_.model);
    check_keys(asked.args);
    const auto set = [&](const char* key, const std::string& text) {
        asked.args.flags.push_back({find_option(model_command.own, key), text});
    };
    set("layers", request_.layers);
    const bool is_text = asked.args.has("text") || asked.args.has("text_file");
    if (request_.truncate && is_text && !asked.args.has("truncate"))
        set("truncate", std::to_string(*request_.truncate));
    return asked;
}

TextSums TextScanner::scan(const Record& record) {
    const ModelAsked asked = ask(record);
    ModelFiles& files = models_.open(asked.request, asked.path);
    ModelPlan plan(asked, files);
    TextRun run(request_, plan, files, workers_);
    plan.pass_layers_on([&](const NamedArray& array) { run.take(array); });
    plan.require_memory(false);
    plan.run_layers(workers_);
    return run.finish();
}

}  // namespace attn::cli
