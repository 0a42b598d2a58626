// Tensors as PyTorch prints them, against PyTorch's own output.
#include "io/write/output_formats.hpp"
#include "tests/support/support.hpp"

namespace torch_writer_test {
namespace {

using namespace attn;
using namespace attn::io;

template <class T>
AnyArray typed(const Array<double>& values) {
    Array<T> array = Array<T>::from_shape(values.shape());
    std::transform(values.begin(), values.end(), array.begin(),
                   [](double v) { return static_cast<T>(v); });
    return array;
}

TEST_CASE("torch: every tensor on file is printed as PyTorch prints it") {
    const auto cases = test::load_data("golden/torch_print.json")["cases"];
    CHECK(cases.size() >= 38);
    for (const auto& recorded : cases) {
        const std::vector<double> values = test::flat(recorded["values"]);
        Array<double> array =
            Array<double>::from_shape(recorded["shape"].get<std::vector<std::size_t>>());
        std::copy(values.begin(), values.end(), array.begin());
        const std::string dtype = recorded["dtype"];
        const AnyArray any = dtype == "float32"   ? typed<float>(array)
                             : dtype == "float64" ? typed<double>(array)
                                                  : typed<std::int64_t>(array);
        CHECK(torch_text(any, recorded["precision"]) == recorded["text"].get<std::string>());
    }
}

}  // namespace
}  // namespace torch_writer_test
