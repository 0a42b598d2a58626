#!/bin/sh
# Prose keeps to standard terms, and old identifiers do not come back.
#     sh tests/wording_test.sh [FOLDER]
set -eu
cd "${1:-$(dirname "$0")/..}"
# A directory joins this list once it is clean.
clean='README.md CHANGELOG.md tests/README.md cli core io'
phrases=' stands? | beside | (is|are) no [a-z]| passed over| let go of|(is|are|be) told | lies | anew\b| (a|the) house\b
 rooms\b| (a|each|every|other) room\b| way out\b| parted | whole number| by itself| by themselves| a line a | one an? [a-z]+[,;)]
where nothing is said|^[^a-z]*Of (a|the) [a-z ]+: '
identifiers='\<(Desk|unwanted|RowParts|ScoreModifiers|describe_[a-z]+|mix_values|tiles_together|make_room|settle[sd]?(_[a-z]+)?|(most|fewest)_[a-z]+)\>'
# shellcheck disable=SC2086 # the list is split into its words
if grep -rnE --include='*.[ch]pp' --include='*.md' -e "$phrases" -e "$identifiers" $clean | grep -viE 'there (is|are) no '; then
    echo 'wording: the lines above have a set phrase or an old identifier; expected the standard term' >&2
    exit 1
fi
