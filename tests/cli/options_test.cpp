// The option table: every option is whole, and config is a request again.
#include "cli/request/options.hpp"
#include "cli/args/command_line.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <set>

#include "tests/support/support.hpp"

using namespace attn;
using namespace attn::cli;

TEST_CASE("options: every one has a name of its own, a group, a mode, help with its default") {
    std::set<std::string> names;
    for (const Option& option : options()) {
        CAPTURE(option.name);
        CHECK(names.insert(option.name).second);
        CHECK_FALSE(option.group.empty());
        CHECK(option.modes != 0);
        CHECK(option.store);
        if (option.is_flag) CHECK((option.kind == Kind::boolean) == option.argument.empty());
        const bool has_default = option.help.find("default") != std::string::npos ||
                                 option.name == "example" || option.name == "text";
        CHECK(has_default);
    }
}

TEST_CASE("options: a flag that has been given wins over the request's key") {
    const char* argv[] = {"attn", "multihead", "x.json", "--heads", "4", "--no-qkv-bias"};
    Request request = parse_command_line(6, argv).request;
    apply_key(request, "heads", 2, std::string("x.json:1:2"));
    apply_key(request, "qkv_bias", true, std::string("x.json:1:9"));
    apply_key(request, "seed", -5, std::string("x.json:1:20"));
    CHECK(request.settings.heads == 4);
    CHECK_FALSE(request.settings.qkv_bias);
    CHECK(request.settings.seed.negative);
    CHECK(request.settings.seed.bits == static_cast<std::uint64_t>(-5));
}

TEST_CASE("options: seeds from -2^63 to 2^64-1 come back as they went in") {
    for (const char* text : {"0", "-1", "18446744073709551615", "-9223372036854775808", "123"}) {
        const char* argv[] = {"attn", "self", "--example", "journey", "--seed", text};
        const Request request = parse_command_line(6, argv).request;
        CHECK(nlohmann::json::parse(config_of(request))["seed"].dump() == text);
    }
}

TEST_CASE("options: config applied to a fresh request gives the same config") {
    const char* argv[] = {"attn",        "causal", "--example", "journey", "--dropout",
                          "0.25",        "--seed", "7",         "--emit",  "scores,mask",
                          "--precision", "3",      "--pretty"};
    const Request request = parse_command_line(13, argv).request;
    const std::string config = config_of(request);
    Request again;
    again.settings.mode = Mode::causal;
    const auto members = nlohmann::json::parse(config);
    for (const auto& [key, value] : members.items())
        if (key != "mode") apply_key(again, key, value, std::string("config"));
    CHECK(config_of(again) == config);
}
