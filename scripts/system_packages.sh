#!/bin/sh
# See to the programs that pip can't bring: a Chromium (browser tests) and bubblewrap (the grading sandbox); with the word
# "test" also PostgreSQL, whose server one test starts for a gradebook that graders share.
# With apt and the right to use it they are installed; otherwise the reader is told exactly what to install.
# Never fails: the course itself works without them, and `python -m autograder doctor` goes on saying what is missing.
set -u

missing=""
command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 ||
    command -v google-chrome >/dev/null 2>&1 ||
    [ -d "/Applications/Google Chrome.app" ] || [ -d "/Applications/Chromium.app" ] || missing="chromium"
if [ "$(uname -s)" = Linux ]; then
    command -v bwrap >/dev/null 2>&1 || missing="$missing bubblewrap"
fi
if [ "${1:-}" = test ]; then
    command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
fi
missing=${missing# }
[ -n "$missing" ] || exit 0

if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "Installing system packages: $missing"
    export DEBIAN_FRONTEND=noninteractive
    # $missing is a list of words on purpose.
    # shellcheck disable=SC2086
    if apt-get update -qq </dev/null && apt-get install -y -qq --no-install-recommends $missing </dev/null >/dev/null; then
        exit 0
    fi
    echo "apt-get could not install them (see above)." >&2
fi

echo "Still missing: $missing" >&2
echo "  needed for: chromium: the browser tests; bubblewrap: grading other people's code. Learning works without them." >&2
case "$missing" in *postgresql*) echo "              postgresql: the test of a shared gradebook" >&2 ;; esac
case "$(uname -s)" in
Linux) echo "  what to do: sudo apt-get install $missing    (or your system's packages of the same names)" >&2 ;;
Darwin) echo "  what to do: brew install --cask chromium" >&2 ;;
esac
exit 0
