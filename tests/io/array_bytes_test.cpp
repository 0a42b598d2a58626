// The bytes of streamed arrays, which another thread takes while the next rows are made.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "io/write/array_bytes.hpp"
#include "tests/support/row_stream.hpp"

namespace array_bytes_test {

using namespace attn;
using namespace attn::io;

namespace {

Array<float> counted(std::size_t rows) {
    Array<float> values = Array<float>::from_shape({rows, 3});
    float next = 0;
    for (float& value : values) value = next++;
    return values;
}

NamedArray streamed(std::size_t rows, std::size_t at_once) {
    return {"a", {}, {}, test::row_stream(counted(rows), at_once)};
}

}  // namespace

TEST_CASE("array bytes: a stream gives its rows in order, whatever threads there are") {
    ThreadPool one(1), three(3);
    for (const ThreadPool* workers :
         {static_cast<const ThreadPool*>(nullptr), static_cast<const ThreadPool*>(&one),
          static_cast<const ThreadPool*>(&three)})
        for (std::size_t rows : {1u, 2u, 7u, 64u})
            for (std::size_t at_once : {1u, 2u, 5u, 100u}) {
                std::string bytes;
                write_bytes(streamed(rows, at_once), {}, workers,
                            [&](std::string_view piece) { bytes += piece; });
                const Array<float> all = counted(rows);
                CHECK(bytes == std::string_view(reinterpret_cast<const char*>(all.data()),
                                                all.size() * sizeof(float)));
            }
}

TEST_CASE("array bytes: what fails on either side comes out, and ends both") {
    ThreadPool two(2);
    for (int last = 1; last <= 4; ++last) {
        int taken = 0;
        const auto take = [&](std::string_view) {
            if (++taken == last) throw std::runtime_error("full");
        };
        CHECK_THROWS_WITH(write_bytes(streamed(8, 2), {}, &two, take), "full");
        CHECK(taken == last);

        NamedArray array = streamed(8, 2);
        RowStream<float>& stream = std::get<RowStream<float>>(*array.stream);
        stream.next = [next = std::move(stream.next), made = 0, last]() mutable {
            if (++made == last) throw std::runtime_error("no memory");
            return next();
        };
        CHECK_THROWS_WITH(write_bytes(array, {}, &two, [](std::string_view) {}), "no memory");
    }
}

}  // namespace array_bytes_test
