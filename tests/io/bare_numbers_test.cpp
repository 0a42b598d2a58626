// Numbers of other programs: without a header, as words of $readmemh, in C, as TensorProto, as
// lines of objects, and as programs print them. What is wrong in them: hostile/bare.py.
#include "io/read/input_formats.hpp"
#include "tests/support/support.hpp"

namespace bare_numbers_test {

using namespace attn;
using namespace attn::io;
using namespace attn::test;

const ArrayRules anything = ArrayRules::anything(8);

std::vector<double> read(const std::string& path, const std::vector<std::size_t>& shape) {
    CAPTURE(path);
    const NumberArray array = read_one_array(open_input_file(path), anything, nullptr);
    CHECK(array.shape() == shape);
    return numbers_of(array.values);
}

/// Numbers of T by each of its names, in both orders of bytes, and as words of text.
template <class T>
void check_type(const Words& names, std::mt19937& random) {
    std::vector<double> expected;
    std::string little, big, words;
    for (int i = 0; i < 12; ++i) {
        T number = static_cast<T>(random() % 100);
        if (std::is_signed_v<T> && random() % 2 == 0) number = static_cast<T>(-number);
        if (std::is_floating_point_v<T>) number /= T{8};
        expected.push_back(static_cast<double>(number));
        std::string bytes(sizeof number, '\0'), word;
        std::memcpy(bytes.data(), &number, sizeof number);
        little += bytes;
        std::ranges::reverse(bytes);
        big += bytes;
        for (const char byte : bytes) {
            word += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
            word += "0123456789abcdef"[byte & 15];
        }
        words += i == 5 ? "@5 /* a */ 0x" + word + " // b\n" : word + (i % 3 == 0 ? " " : "\n");
    }
    write_text("x.raw", little);
    write_text("y.raw", big);
    write_text("x.hex", words);
    for (const std::string& name : names) {
        CHECK(read("x.raw:" + name + ":3x4", {3, 4}) == expected);
        CHECK(read("y.raw:" + name + "be:2x3x2", {2, 3, 2}) == expected);
        CHECK(read("x.hex:" + name + ":12", {12}) == expected);
        CHECK(contains(error_of([&] { open_input_file("x.raw:" + name + ":3x5"); }),
                       "found " + std::to_string(little.size()) + " bytes; expected"));
    }
}

TEST_CASE("bare numbers: every type by every name, in bytes and words") {
    scratch_folder();
    std::mt19937 random(5);
    check_type<float>({"float32", "f4", "F32"}, random);
    check_type<double>({"float64", "f8", "F64"}, random);
    check_type<std::int8_t>({"int8", "i1", "I8", "fixed8.0"}, random);
    check_type<std::int16_t>({"int16", "i2", "I16", "fixed16.0"}, random);
    check_type<std::int32_t>({"int32", "i4", "I32", "fixed32.0"}, random);
    check_type<std::int64_t>({"int64", "i8", "I64", "fixed64.0"}, random);
    check_type<std::uint8_t>({"uint8", "u1", "U8"}, random);
    check_type<std::uint16_t>({"uint16", "u2", "U16"}, random);
    check_type<std::uint32_t>({"uint32", "u4", "U32"}, random);
    check_type<std::uint64_t>({"uint64", "u8", "U64"}, random);
    write_text("x.raw", std::string("\x00\x18\x00\xf4", 4));
    CHECK(read("x.raw:fixed16.12:2", {2}) == std::vector{1.5, -0.75});
    CHECK(read("x.raw:fixed:16,12:2", {2}) == std::vector{1.5, -0.75});
    CHECK(read("x.raw:bfloat16be:2x1", {2, 1}).size() == 2);
    CHECK(split_data_path("-:float32:2x3").file == "-");
    CHECK(split_data_path("a.npz:float32:2").raw->shape == std::vector<std::size_t>{2});
    CHECK(split_data_path("a.npz:layer:0").array == "layer:0");
    write_text("w.hex", "@40\n23f\n3ec\n");  // ap_fixed<10,4> of 8.99 and -0.3
    CHECK(read("w.hex:fixed10.6:2", {2}) == std::vector{-7.015625, -0.3125});
    CHECK(open_input_file("w.hex:fixed10.6:2").arrays->arrays[0].address == 0x40u);
    CHECK(contains(error_of([] { open_input_file("x.raw:fixed10.6:2"); }), "whole bytes"));
    write_text("bits.h", "const uint16_t w[2] = {0x3fc0, 0xbf40};");
    CHECK(read("bits.h:bfloat16:2", {2}) == std::vector{1.5, -0.75});
    write_text("w.h",
               "unsigned char a[1] = {255}; const int8_t b[2] = {0xff, 127};\n"
               "#if 0\nfloat off[1] = {1};\n#endif\nfloat64_t d[] = {0.1, 1e-40};");
    CHECK(read("w.h:b", {2}) == std::vector{-1.0, 127.0});
    CHECK(read("w.h:d", {2}) == std::vector{0.1, 1e-40});
    CHECK(open_input_file("w.h").arrays->arrays.size() == 3);
    for (const char* c :
         {"int8_t a[1] = {300};", "uint8_t a[1] = {-1};", "int a[1] = {1.5};",
          "int x[1] = {\n#ifdef A\n1\n#endif\n};", "foo a[1] = {9007199254740993};"}) {
        write_text("c.h", c);
        CHECK(contains(error_of([] { open_input_file("c.h"); }), "expected"));
    }
    write_text("named.txt", "q\ntensor([[1., 2.]])\nk\ntensor([[3., 4.]])\n");
    CHECK(read("named.txt:k", {1, 2}) == std::vector{3.0, 4.0});
    for (const char* wrong : {"float23:3x4", "float32", "float32:3x", "float32:0x3", "fixed65.4:2",
                              "tf32:1", "fixed16.2000:2", ":2", "float32:99999999999999999999"})
        CHECK(contains(error_of([&] { open_input_file("x.raw:" + std::string(wrong)); }),
                       "expected a type and sizes"));
}

TEST_CASE("bare numbers: a device without an end; words of a folder beyond their bits") {
    for (const std::string size : {"1", "24", "65536", "10000000"})
        CHECK(contains(error_of([&] { open_input_file("/dev/zero:int8:" + size); }),
                       "found more than " + size + " bytes; expected " + size));
    std::filesystem::create_directory(scratch_folder() + "/words");
    for (int bits = 9; bits < 16; ++bits)
        for (const int beyond : {0, 1, -1}) {
            const int half = 1 << bits >> 1, word = beyond < 0 ? -half - 1 : half - 1 + beyond;
            const auto number = static_cast<std::uint64_t>(word);
            write_text("words/a.npy", npy_header("<i2", {1, 1}) + bytes_of_number(number, 2));
            write_text("words/manifest.json",
                       R"({"files":[{"name":"a","file":"a.npy","dtype":"int16","shape":[1,1],)"
                       R"("store":"fixed:)" +
                           std::to_string(bits) + ",1\"}]}");
            const std::string error = error_of([] { open_input_file("words"); });
            CHECK(contains(error, "[0, 0] is " + std::to_string(word)) == (beyond != 0));
            CHECK(error.empty() == (beyond == 0));
        }
}

TEST_CASE("numbers of other programs: each form is the matrix") {
    scratch_folder();
    const std::string rows = "[[0.5, 0.25],\n [1.5, -0.5],\n [0.1, 0.9]]",
                      lines = " 0.5  0.25\n 1.5 -0.5\n 0.1 0.9\n";
    const std::string proto = "\x08\x03\x08\x02\x10\x0b\x42\x01q\x52\x30";
    std::string doubles;
    for (const double number : {0.5, 0.25, 1.5, -0.5, 0.1, 0.9})
        doubles.append(reinterpret_cast<const char*>(&number), sizeof number);
    const std::vector<std::pair<std::string, std::string>> files{
        {"q.txt", "tf.Tensor(\n" + rows + ", shape=(3, 2), dtype=float32)"},
        {"q.txt", "<tf.Tensor: shape=(3, 2), dtype=float32, numpy=\narray(" + rows + ")>"},
        {"q.txt", "Tensor(shape=[3, 2], dtype=float32, stop_gradient=True,\n " + rows + ")"},
        {"q.txt", "Tensor {\n  data:\n" + rows + ",\n  shape:  [3, 2],\n  dtype:  \"f32\",\n}"},
        {"q.txt", "Parameter containing:\ntensor(" + rows + ", requires_grad=True)"},
        {"q.txt", rows + "\nTensor[[3, 2], f32]"},
        {"q.txt", rows + "\n<NDArray 3x2 @cpu(0)>"},
        {"q.txt", rows + ", shape=[3, 2], strides=[2, 1], layout=Cc (0x5), const ndim=2"},
        {"q.txt",
         "ggml_debug: q = (f32) a{2, 3, 1, 1} = {2, 3, 1, 1}\n[\n" + rows + ",\n]\nsum = 2\n"},
        {"q.txt", lines + "[ CPUFloatType{3,2} ]\n"},
        {"q.txt", "1e-01 *\n 5  2.5\n 15  -5\n 1 9\n[ CPUFloatType{3,2} ]"},
        {"q.txt",
         "Columns 1 to 1 0.5\n 1.5\n 0.1\n\nColumns 2 to 2 0.25\n-0.5\n 0.9\n"
         "[ CPUFloatType{3,2} ]"},
        {"q.txt", "3\u00d72 Matrix{Float64}:\n" + lines},
        {"q.h", "static const double q[][2] = {{0.5, .25f}, {0x1.8p0, -5e-1}, {1.E-1, +0.9}};"},
        {"q.h:float64:3x2", "double q[6] = {0.5, 0.25, 1.5, -0.5, 0.1, 0.9};"},
        {"q.pb", proto + doubles},
        {"q.jsonl", R"({"text":"a","embedding":[0.5,0.25]})"
                    "\n"
                    R"({"text":"b","embedding":[1.5,-0.5]})"
                    "\n\n"
                    R"({"embedding":[0.1,0.9],"text":"c"})"},
        {"q.jsonl:v", "{\"u\":[1],\"v\":[0.5,0.25]}\n{\"v\":[1.5,-0.5]}\n{\"v\":[0.1,0.9]}"},
    };
    for (const auto& file : files) {
        CAPTURE(file.second);
        write_text(file.first.substr(0, file.first.find(':')), file.second);
        CHECK(read(file.first, {3, 2}) == std::vector{0.5, 0.25, 1.5, -0.5, 0.1, 0.9});
    }
}

TEST_CASE("numbers of other programs: Julia's and libtorch's matrices of more axes") {
    scratch_folder();
    write_text("j.txt",
               "2\u00d72\u00d72 Array{Int64, 3}:\n[:, :, 1] =\n 0  2\n 4  6\n\n[:, :, 2] =\n 1  "
               "3\n 5  7\n");
    write_text("t.txt",
               "(1,.,.) = \n  0  1\n  2  3\n\n(2,.,.) = \n  4  5\n  6  7\n[ CPULongType{2,2,2} ]");
    for (const char* path : {"j.txt", "t.txt"})
        CHECK(read(path, {2, 2, 2}) == std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("lines of objects: texts are labels, and one of several lists has to be named") {
    scratch_folder();
    write_text("e.jsonl",
               "{\"text\":\"a\",\"vector\":[1,2],\"ids\":[3]}\n{\"text\":\"b\",\"vector\":[3,4],"
               "\"ids\":[5]}");
    CHECK(contains(error_of([] { open_input_file("e.jsonl"); }),
                   "vector, ids; expected one of them"));
    MatrixLabels labels;
    read_one_array(open_input_file("e.jsonl:vector"), anything, nullptr, {}, &labels);
    CHECK(labels.rows == Words{"a", "b"});
    write_text("e.jsonl", "{\"vector\":[1,2]}\n{\"vector\":[3,null]}\n");
    CHECK(contains(error_of([] { read_one_array(open_input_file("e.jsonl"), {}, nullptr); }),
                   "e.jsonl:2:14"));
}

}  // namespace bare_numbers_test
