// The table of targets: a row each, with what its runs begin with.
#include "cli/args/args.hpp"
#include "cli/commands.hpp"
#include "core/operator/arrays.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/gguf_bytes.hpp"
#include "tests/support/requests.hpp"

namespace attn::fuzz {
namespace {

using Texts = std::vector<std::string>;

constexpr std::size_t longest_seed = 4096;

/// Files of these names, each behind a few bytes of choices.
Texts files(std::initializer_list<std::string_view> suffixes, const std::string& choices = "") {
    Texts texts = files_with(suffixes, longest_seed);
    for (std::string& text : texts) text.insert(0, choices);
    return texts;
}

Texts operator+(Texts texts, const Texts& more) {
    texts.insert(texts.end(), more.begin(), more.end());
    return texts;
}

/// Without the folders of files, which are where the targets run.
std::string without_folders(std::string text) {
    for (const char* folder : {"data/", "models/"})
        for (std::size_t at = 0; (at = text.find(folder)) != std::string::npos;)
            text.erase(at, std::string_view(folder).size());
    return text;
}

Texts random_seeds() {
    std::mt19937 random(1);
    Texts seeds;
    for (std::size_t size : {8u, 16u, 64u, 64u, 128u, 256u, 512u})
        for (int i = 0; i < 4; ++i) {
            std::string& seed = seeds.emplace_back(size, '\0');
            for (char& c : seed) c = static_cast<char>(random());
        }
    return seeds;
}

Texts numbers() {
    return test::words_in(
        "0 -0.0 1.25e-3 9007199254740993 1e400 4.9406564584124654e-324 7.038531e-26 "
        "2.2250738585072011e-308 0.1234567890123456789 NaN -Infinity +.5 007");
}

Texts texts() {
    return {"Life is short, eat dessert first",
            "caf\u00e9 \u4e16\u754c \U0001f600\u3000a\u0301",
            "\x1b[2J \xe2\x80\xae \xff\xfe",
            "a,,b\t c\u00a0d\r\n",
            "\xc0\x80",
            "\xe0\x80\x80",
            "\xed\xa0\x80",
            "\xf4\x90\x80\x80",
            "\xf5\x80\x80\x80",
            "\xe2\x82"};
}

Texts json_seeds() {
    return files({".json"}) +
           Texts{"[[1, 2.5], [-3e2, 4]]", R"({"a": [[1]], "b": "\u00e9\n"})",
                 R"({"\u0120\"\\": "\/\b\f\r\t", "\ud83d\ude00": "\u0000\u00E9"})",
                 R"({"a": "\ud83d", "b": "\x", "c": "\u12", "d": "\u+123"})",
                 R"([["NaN", null], [true, -Infinity]])"};
}

Texts ndjson_seeds() {
    return files({".ndjson"}) +
           Texts{"[1, 2]\n\n[3, 4]\n", "[[1], [2]]\n[[3], [4]]", "{\"a\": 1}\n{}"};
}

Texts csv_seeds() {
    return files({".csv"}) + Texts{"1,2\n3,4\n", ",a,b\nx,1,2\n\"y,z\",3,4\n",
                                   "# shape: 2, 1, 2\n1 2\n3 4\n", "sep=;\na;b\n1;nan\n",
                                   "\"a\"\t0\t1\n\"b\"\tinf\t-2\n"};
}

Texts safetensors_seeds() {
    return files({".safetensors"});
}

Texts gguf_seeds() {
    using Bytes = test::GgufBytes;
    Texts seeds = files({".gguf"});
    seeds.push_back(Bytes(0, 3)
                        .key("a", 9)
                        .number(8, 4)
                        .number(2, 8)
                        .string("x")
                        .string("y")
                        .key("b", 9)
                        .number(9, 4)
                        .number(1, 8)
                        .number(6, 4)
                        .number(1, 8)
                        .number(0, 4)
                        .uint32("general.alignment", 8)
                        .text());
    for (std::uint64_t type :
         {0u, 1u, 2u, 3u, 6u, 7u, 8u, 10u, 11u, 12u, 13u, 14u, 16u, 20u, 23u, 28u, 30u, 39u, 99u})
        seeds.push_back(
            Bytes(1, 0).tensor("x", {256, 1}, type, 0).data(std::string(2048, 'x')).text());
    for (const char* name : {"llama", "qwen35", "gpt-oss", "gpt2", "falcon", "bloom", "phi3"})
        seeds.push_back(Bytes(2, 8)
                            .word("general.architecture", name)
                            .uint32(name + std::string(".embedding_length"), 8)
                            .uint32(name + std::string(".block_count"), 2)
                            .uint32(name + std::string(".attention.head_count"), 2)
                            .uint32(name + std::string(".ssm.group_count"), 2)
                            .uint32(name + std::string(".ssm.time_step_rank"), 4)
                            .uint32(name + std::string(".ssm.inner_size"), 8)
                            .uint32(name + std::string(".ssm.state_size"), 2)
                            .tensor("blk.0.attn_q.weight", {8, 8}, 0, 0)
                            .tensor("blk.0.attn_qkv.weight", {4, 16}, 0, 256)
                            .floats(std::vector<float>(128, 1))
                            .text());
    return seeds;
}

Texts tensor_proto_seeds() {
    const std::string head = "\x08\x02\x08\x03\x10\x01";
    return {head + "\x42\x01x\x4a\x18" + std::string(24, '?'),
            head + "\x22\x18" + std::string(24, '@'), "\x0a\x01\x02\x10\x0a\x2a\x03\x80\x78\x01"};
}

Texts c_seeds() {
    return {"#define N 2\nstatic const float x[N][2] = {{1.5f, -0x1p3}, {INFINITY, .5}}; /* a */",
            "int8_t x[] = {0x7f, -010, 1L}, y[1]; // b\nchar z[] = \"]={\";"};
}

Texts memh_seeds() {
    return {"// words\n@0 3f80 0x4000\n@2 /* a */ c0_00 0 1 2\n"};
}

Texts printed_seeds() {
    return {"Parameter containing:\ntensor([[1., -inf]], requires_grad=True)",
            "tf.Tensor(\n[[1 2]\n [3 4]], shape=(2, 2), dtype=int32)",
            "Tensor(shape=[1, 2], stop_gradient=True,\n [[1., 2.]])",
            "[[1., 2.]]\nTensor[[1, 2], f32]",
            "ggml_debug: x = (f32) = {2, 1, 1, 1}\n[[[1, 2],],]\nsum = 3\n",
            "1e-03 *\nColumns 1 to 1 1\n\nColumns 2 to 2-2\n[ CPUFloatType{1,2} ]",
            "(1,.,.) = \n 1  2\n(2,.,.) = \n 3 4\n[ CPULongType{2,1,2} ]",
            "1\u00d72\u00d72 Array{Float64, 3}:\n[:, :, 1] =\n 1.0  NaN\n[:, :, 2] =\n 1  2"};
}

/// Codes and scales in safetensors.
Texts quantised_seeds() {
    Texts seeds = safetensors_seeds();
    const auto add = [&](const std::string& header, std::size_t bytes) {
        seeds.push_back(io::bytes_of_number(header.size(), 8) + header + std::string(bytes, '1'));
    };
    add(R"({"a":{"dtype":"F8_E4M3","shape":[3,4],"data_offsets":[0,12]},)"
        R"("a_scale_inv":{"dtype":"F32","shape":[2,2],"data_offsets":[12,28]}})",
        28);
    add(R"({"a_blocks":{"dtype":"U8","shape":[2,1,16],"data_offsets":[0,32]},)"
        R"("a_scales":{"dtype":"U8","shape":[2,1],"data_offsets":[32,34]}})",
        34);
    return seeds;
}

Texts request_seeds() {
    Texts seeds = test::lines_of(without_folders(test::mixed_requests(16)));
    for (const std::string& line :
         test::lines_of(without_folders(test::read_text(test::data_path("requests.ndjson")))))
        seeds.push_back(line);
    std::erase_if(seeds, [](const std::string& seed) { return seed.size() > longest_seed; });
    return seeds;
}

Texts config_seeds() {
    Texts seeds;
    for (const char* model : {"gpt2", "llama", "mistral", "qwen2", "bert", "neox"})
        for (char by_ids : {'\0', '\1'})
            seeds.push_back(
                static_cast<char>(seeds.size() / 2) + std::string(1, by_ids) +
                test::read_text(test::data_path("models/" + std::string(model) + "/config.json")));
    return seeds;
}

/// The commands that the manual shows and that people get wrong, a word a line.
Texts argv_seeds() {
    Texts seeds;
    for (const std::string& line : test::lines_of(
             without_folders(test::manual_text() +
                             test::read_text(test::data_path("../tests/cli/mistakes.tsv"))))) {
        const std::size_t begin = line.find("attn ");
        if (begin == std::string::npos || line.size() > 300) continue;
        std::string seed;
        for (const std::string& word : test::words_in(line.substr(begin + 5))) seed += word + "\n";
        if (seed.find('/') == std::string::npos) seeds.push_back(seed);
    }
    return seeds;
}

Texts flag_file_seeds() {
    Texts seeds;
    for (char command = 0; command < 12; ++command)
        for (const char* flags :
             {R"({"d_out": 2, "seed": 123, "causal": true, "emit": ["scores"]})",
              R"({"format": "json", "heads": 2, "window": [1, -1], "scale": 0.5, "layer": 0})"})
            seeds.push_back(std::string(1, command) + flags);
    return seeds;
}

Texts resume_seeds() {
    return random_seeds() + Texts{std::string("\0\0\1\0\0\0", 6), std::string("\1\0\1\x40\0\0", 6),
                                  std::string("\0\0\0", 3) + "{\"id\":1,\"error\":{}}\n"};
}

Texts result_seeds() {
    Texts seeds;
    const std::array<const char*, 7> suffixes{"",     ".json", ".ndjson",     ".csv",
                                              ".npy", ".npz",  ".safetensors"};
    for (char i = 1; i < 7; ++i)
        for (char picture : {'\0', '\1', '\2', '\3'})
            seeds = seeds +
                    files({suffixes[static_cast<std::size_t>(i)]}, std::string{i, picture, '\0'});
    return seeds;
}

Texts json_words() {
    return {"NaN", "Infinity", "-Infinity", "null",    "true",  "false", "[[",
            "]]",  "],[",      "\\u0000",   "\"NaN\"", "1e400", "-0.0",  "\xef\xbb\xbf"};
}

Texts binary_words() {
    return test::lines_of(
        "\x93NUMPY\x01\n'descr': '<f4'\n'fortran_order': True\n'shape': (2, "
        "3)\n|b1\n<f2\n>f8\n|u1\n<i8\n"
        "PK\3\4\nPK\1\2\nPK\5\6\nPK\6\6\n"
        "__metadata__\n\"dtype\":\"BF16\"\n\"shape\":[\n\"data_offsets\":[0,\nattn.result/1");
}

Texts gguf_words() {
    Texts words = test::words_in(
        "GGUF general.architecture general.alignment split.count split.no blk.0.attn_q.weight "
        "token_embd.weight .block_count .ssm.inner_size blk.0.ffn_gate_exps.weight");
    for (std::uint64_t number : {0u, 1u, 2u, 8u, 9u, 12u, 32u, 39u})
        for (std::size_t size : {4u, 8u}) words.push_back(io::bytes_of_number(number, size));
    return words;
}

Texts torch_seeds() {
    constexpr std::array<std::string_view, 1> suffixes{".pt"};
    return files_with(suffixes, 2 * longest_seed);
}

Texts torch_words() {
    return binary_words() + test::lines_of(
                                "ctorch._utils\n_rebuild_tensor_v2\n_rebuild_parameter\n"
                                "ctorch\nFloatStorage\nLongStorage\nstorage\ndata.pkl\n"
                                "(t\n]\n}\n)R\ns.\nu.\nh\1\nq\1\nK\2\n\x8a\x08\nJ\xff\xff\xff\xff");
}

Texts csv_words() {
    return {"# shape: ", "sep=", "\"\"", "nan", "-inf", "0,1,2\n", "\r\n", ";", "\t"};
}

/// Keys, modes, names of arrays and choices, as the tables have them.
Texts request_words() {
    Texts words = json_words();
    for (const cli::Option& option : cli::attn_program().options) {
        words.push_back("\"" + std::string(option.key) + "\": ");
        for (std::string_view name : cli::names_of(option.field))
            words.push_back("\"" + std::string(name) + "\"");
    }
    for (const char* key : {"mode", "inputs", "query", "key", "value", "context", "mask", "id",
                            "past_key", "past_value", "key_padding_mask", "tokens"})
        words.push_back("\"" + std::string(key) + "\": ");
    for (const ModeRow& mode : mode_rows) words.push_back("\"" + std::string(mode.name) + "\"");
    for (const ArrayRow& array : all_arrays) words.push_back("\"" + std::string(array.name) + "\"");
    return words;
}

Texts argv_words() {
    Texts words;
    for (const cli::CommandRow* command : cli::attn_program().commands) {
        words.push_back(std::string(command->name) + "\n");
        for (const cli::Option& option : command->own)
            words.push_back("\n" + cli::flag_of(option) + "\n");
    }
    for (const cli::Option& option : cli::attn_program().options)
        words.push_back("\n" + cli::flag_of(option) + "\n");
    for (const ArrayRow& array : all_arrays) words.emplace_back(array.name);
    for (const char* file : {"journey.csv", "journey_result.json", "gpt2", "--no-", "--help"})
        words.emplace_back(file);
    return words;
}

/// What the libraries write into config.json.
Texts config_words() {
    Texts words = json_words();
    std::istringstream keys(test::read_text(test::data_path("models/config_keys.json")));
    for (std::string word; std::getline(keys, word, '"') && std::getline(keys, word, '"');)
        words.push_back("\"" + word + "\": ");
    return words;
}

/// Of random tokenizers, less their cases.
Texts tokenizer_seeds() {
    Texts seeds;
    for (const std::string& line :
         test::lines_of(test::read_text(test::data_path("tokenizers/random.ndjson")))) {
        const std::string_view start = "{\"tokenizer\":", end = ",\"cases\":";
        const std::size_t size = line.rfind(end) - start.size();
        if (line.starts_with(start) && size < 8192)
            seeds.push_back(line.substr(start.size(), size));
    }
    for (const char* regex :
         {"(a+)+$", "\\\\p{L}+|[^\\\\s\\\\p{N}]", "[a&&[^b]]", "(?i:'s|x{1,3}+)"})
        seeds.push_back(
            R"({"model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"a"},)"
            R"("pre_tokenizer":{"type":"Split","behavior":"Isolated","pattern":{"Regex":")" +
            std::string(regex) + "\"}}}");
    return seeds;
}

/// Kinds of parts, from the error that lists them, and what expressions are made of.
Texts tokenizer_words() {
    return json_words() +
           test::words_in(R"("type":"Sequence" "BPE" "Unigram" "WordPiece" "merges":[ "vocab":{
        "byte_fallback":true "ByteLevel" "Metaspace" "Precompiled" \\p{ [^ (?i: (?! {1,3} \\s &&
        [[:alpha:]] "added_tokens":[ "special":true)");
}

Texts no_words() {
    return {};
}

const std::array<Target, 27> targets{{
    {"json", read_json, json_seeds, json_words, 8192},
    {"ndjson", read_ndjson, ndjson_seeds, json_words, 8192},
    {"csv", read_csv, csv_seeds, csv_words, 8192},
    {"npy", read_npy, [] { return files({".npy"}); }, binary_words, 8192},
    {"npz", read_npz, [] { return files({".npz"}); }, binary_words, 8192},
    {"safetensors", read_safetensors, safetensors_seeds, binary_words, 8192},
    {"gguf", read_gguf, gguf_seeds, gguf_words, 8192},
    {"torch", read_torch, torch_seeds, torch_words, 8192},
    {"flax", read_flax, [] { return files({".msgpack"}); }, binary_words, 8192},
    {"pb", read_tensor_proto, tensor_proto_seeds, no_words, 4096},
    {"c", read_c, c_seeds, no_words, 4096},
    {"memh", read_memh_words, memh_seeds, no_words, 4096},
    {"printed", read_printed, printed_seeds, no_words, 4096},
    {"quantised", read_quantised, quantised_seeds, binary_words, 4096},
    {"zip", read_zip, [] { return files({".npz"}); }, binary_words, 8192},
    {"decimal", read_decimal, numbers, no_words, 64},
    {"utf8", read_utf8, texts, no_words, 512},
    {"words", split_words, texts, no_words, 512},
    {"request", answer_request, request_seeds, request_words, 2048},
    {"config_json", read_model_config, config_seeds, config_words, 4096},
    {"argv", parse_argv, argv_seeds, argv_words, 512},
    {"flag_file", parse_flag_file, flag_file_seeds, request_words, 1024},
    {"operator", compute_operator, random_seeds, no_words, 512},
    {"resume", resume_batch, resume_seeds, json_words, 1024},
    {"result", look_at_result, result_seeds, binary_words, 8192},
    {"tokenizer", use_tokenizer, tokenizer_seeds, tokenizer_words, 8192},
    {"model", run_model_of_config, model_seeds, config_words, 4096},
}};

}  // namespace

std::span<const Target> all_targets() {
    return targets;
}

}  // namespace attn::fuzz
