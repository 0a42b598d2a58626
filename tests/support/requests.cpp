#include "tests/support/requests.hpp"

namespace attn::test {
namespace {

/// Enough words to take some hundred times as long as a quick record.
std::string long_text() {
    std::string text;
    for (int word = 0; word < 200; ++word) text += "word" + std::to_string(word % 37) + " ";
    return text;
}

/// The keys of a mixed record without its id; a record that is not an object is unchanged.
std::string mixed_keys(std::size_t i) {
    static const std::string slow = long_text();
    const std::string seed = std::to_string(i);
    switch (i % 16) {
        case 0: return R"("mode": "self", "inputs": [[0.43, 0.15], [0.5, 0.8]], "seed": )" + seed;
        case 1:
            return R"("mode": "causal", "inputs": "journey.csv", "d_out": 2, "dropout": 0.5,)"
                   R"( "seed": )" +
                   seed;
        case 2:
            return R"("mode": "multihead", "example": "pair", "heads": 2, "dropout": 0.1,)"
                   R"( "dropout_seed": )" +
                   seed;
        case 3:
            return R"("mode": "cross", "inputs": [[1, 2, 3]], "context": "journey.csv",)"
                   R"( "seed": )" +
                   seed;
        case 4:
            return R"("mode": "sdpa", "query": [[1, 0]], "key": [[1, 2], [0, 1]],)"
                   R"( "value": [[1], [2]], "scale": 0.)" +
                   seed + "1";
        case 5:
            return R"("mode": "multihead", "weights": "models/gpt2", "token_ids": [3, 1, )" +
                   std::to_string(i % 5) + "]";
        case 6:
            return R"("mode": "causal", "text": ")" + slow +
                   R"(", "embed_dim": 32, "emit": ["logsumexp"], "seed": )" + seed;
        case 7: return R"("mode": "multihead", "inputs": "journey.csv", "d_out": 4, "heads": 3)";
        case 8: return R"("mode": "self", "inputs": "missing.csv")";
        case 9: return R"("mode": "cross", "inputs": [[1, 2]], "context": "journey.csv")";
        case 10: return R"("mode": "self", "inputs": "tensor.pt")";
        case 11:
            return R"("mode": "multihead", "inputs": "models/hidden.csv", "pre_norm": true,)"
                   R"( "weights": "models/gpt2", "layer": 1, "emit": ["context_vectors"])";
        case 12: return R"("mode": "self", "inputs": [[1, 2], [3, "four"]])";
        default:
            return R"("mode": "linear", "query": [[1], [2]], "key": [[1], [2]],)"
                   R"( "value": [[1], [3]], "decay": )" +
                   std::string(i % 32 == 15 ? "-0.5" : "[[-1], [-0.5]]");
    }
}

std::string mixed_line(std::size_t i) {
    if (i % 16 == 13) return R"({"mode": "self", "inputs": [[1, 2)";  // torn
    if (i % 16 == 14) return i % 32 == 14 ? "" : " \t";
    std::string id;
    if (i % 3 == 0) id = R"("id": )" + std::to_string(1000 + i) + ", ";
    if (i % 3 == 1) id = R"("id": "record )" + std::to_string(i) + R"(", )";
    return "{" + id + mixed_keys(i) + "}";
}

}  // namespace

std::string good(const std::string& members) {
    return R"({"mode": "self", "inputs": [[1, 2], [3, 4]])" +
           (members.empty() ? "" : ", " + members) + "}";
}

void make_operands(const std::string& folder) {
    namespace fs = std::filesystem;
    fs::create_directories(folder);
    const auto overwrite = fs::copy_options::overwrite_existing | fs::copy_options::recursive;
    fs::copy(data_path("journey.csv"), fs::path(folder) / "journey.csv", overwrite);
    fs::copy(data_path("models"), fs::path(folder) / "models", overwrite);
}

std::string mixed_requests(std::size_t lines, std::size_t first) {
    std::string text;
    for (std::size_t i = first; i < first + lines; ++i) text += mixed_line(i) + "\n";
    return text;
}

std::string quick_requests(std::size_t lines, std::size_t first) {
    std::string text;
    for (std::size_t i = first; i < first + lines; ++i)
        text += R"({"id": )" + std::to_string(i) +
                R"(, "mode": "self", "inputs": [[1, 2], [3, 4]], "seed": )" + std::to_string(i) +
                "}\n";
    return text;
}

Words lines_of(const std::string& text) {
    std::istringstream stream(text);
    Words lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

}  // namespace attn::test
