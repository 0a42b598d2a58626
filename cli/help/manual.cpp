// cli/manual/embed_manual.cmake embeds the pages.
#include "cli/help/manual.hpp"

#include <algorithm>
#include <string>

#include "cli/args/other_names.hpp"

namespace attn::cli {
namespace {

/// Earlier names of a page, and words that people look up.
struct TopicWords {
    std::string_view topic;
    std::string_view words;  // as listed
};

constexpr TopicWords topic_words[] = {
    {"scaling", " engines mpi partial "},
    {"scripts",
     " exit_codes schemas environment shell security error errors exit exit_code exitcode status "},
    {"formats", " csv tsv json npy npz numpy safetensors gguf gz gzip zip excel file files input "},
    {"check", " compare "},
    {"golden",
     " hardware port porting python pytorch c verilog memh readmemh fixed_point fpga quantize "
     "quantise "},
    {"model", " models gpt huggingface hf transformers weights_file "},
    {"notebooks", " raschka book chapter "},
    {"numbers", " speed performance benchmark benchmarks fast "},
    {"operator", " linear softmax attention masking rotary cache gqa mqa flash "},
    {"plot", " pictures "},
    {"requests", " arrays result results request "},
};

}  // namespace

const Topic* find_topic(std::string_view name) {
    const auto find = [](std::string_view page) {
        const auto found = std::find_if(manual.begin(), manual.end(),
                                        [&](const Topic& topic) { return topic.name == page; });
        return found == manual.end() ? nullptr : &*found;
    };
    const std::string listed_word = as_listed(name);
    for (const TopicWords& row : topic_words)
        if (row.words.find(listed_word) != std::string_view::npos) return find(row.topic);
    return find(name);
}

std::string_view title_of(const Topic& topic) {
    constexpr std::size_t mark = 2;  // "# "
    return topic.text.substr(mark, topic.text.find('\n') - mark);
}

}  // namespace attn::cli
