// Questions about six queries, drawn at random: words of a command, and the files that they name.
#pragma once

#include "tests/support/walk_text.hpp"

namespace attn::test {

class RandomQuestions : public Dice {
public:
    /// With `more_masks` there are caches, and masks of every kind.
    explicit RandomQuestions(std::uint32_t seed, bool more_masks = false)
        : Dice(seed), more_masks_(more_masks) {}

    static void write_inputs() {
        write_text("x.csv",
                   "w,a,b,c\nYour,0.4,0.1,0.9\njourney,0.5,0.9,0.7\nstarts,0.6,0.8,-0.6\n"
                   "with,0.2,0.6,0.3\none,0.8,0.2,0.1\nstep,0.1,0.8,5\n");
        write_text("c.csv", "1,2,3\n-1,0.5,2\n0,1,1\n2,2,-3\n1,0,1\n");
        write_text("q.json", "[[1,0.5],[0,1],[2,-1],[1,1],[0.5,3],[-1,1]]");
        write_text("k.json", "[[1,2],[0,1],[3,-1],[1,1],[-2,1],[0,0.5]]");
        write_text("past.json", "[[1,0.5],[0.5,-1]]");
        write_text("bias.json", "[[0.5],[-1],[0.25],[2],[0],[1]]");
        write_text("yes.json", "[[true],[false],[true],[true],[true],[true]]");
        write_text("some.json", "[[true,false,true,true,true,true]]");
        write_text("block.json", "[[\"-Infinity\",0,0,0,0,0]]");
        write_text("keys.json", "[0.5,-1,0,\"-Infinity\",1,0]");
    }

    std::string one_of(const Words& words) { return words[below(words.size())]; }

    Words next() {
        const std::string mode = one_of({"self", "causal", "multihead", "cross", "sdpa"});
        const bool has_heads = mode == "multihead" || mode == "cross";
        const bool is_cached = more_masks_ && !has_heads && one_in(4);
        Words words{mode};
        const auto add = [&](const Words& more) { words = words + more; };
        const auto sometimes = [&](const Words& more) {
            if (one_in(3)) add(more);
        };
        if (mode == "sdpa")
            add({"--query", "q.json", "--key", "k.json", "--value", "k.json"});
        else
            add({"x.csv", "--d-out", is_cached ? "2" : one_of({"4", "8"}), "--init",
                 one_of({"linear", "rand", "xavier"})});
        if (mode == "cross") add({"--context", "c.csv"});
        if (mode != "sdpa") sometimes({"--qkv-bias"});
        if (has_heads) add({"--heads", "4"});
        if (has_heads) sometimes({"--kv-heads", one_of({"1", "2"})});
        if (is_cached) add({"--past-key", "past.json", "--past-value", "past.json"});
        sometimes({"--scale", one_of({"2", "0.125", "0.00001", "1"})});
        sometimes({"--softcap", one_of({"0.5", "30"})});
        sometimes({"--alibi", "--alibi-distance", one_of({"absolute", "signed"})});
        sometimes({"--window", one_of({"1", "0,1", "2,-1"})});
        sometimes({"--kv-lengths", one_of({"3", "0", "5"})});
        sometimes({"--sink", one_of({"0.5", "-3"})});
        sometimes({"--dropout", one_of({"0.5", "0.1", "1"})});
        sometimes({"--mask-method", "renormalize"});
        sometimes({"--dtype", "float64"});
        if (mode != "causal") sometimes({"--causal"});
        if (mode != "cross") sometimes({"--rope", one_of({"half", "interleaved"})});
        sometimes({"--causal-align", one_of({"top-left", "bottom-right"})});
        if (!more_masks_) sometimes({"--mask", "bias.json"});
        if (more_masks_ && !is_cached && mode != "cross") {
            sometimes({"--key-padding-mask", "keys.json"});
            if (one_in(3))
                add({"--mask", one_of({"bias.json", "block.json"})});
            else if (one_in(3))
                add({"--mask", one_of({"yes.json", "some.json"}), "--mask-true", "keep"});
        }
        return words;
    }

private:
    bool more_masks_;
};

}  // namespace attn::test
