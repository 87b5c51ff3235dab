import pytest

from search_app.tokens import AS_WRITTEN, analyse, fold


def terms(text: str) -> list[str]:
    return [token for token in analyse(text) if not token.startswith(AS_WRITTEN)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserById", ["getuserbyid", "get", "user", "by", "id"]),
        ("get_user_by_id", ["getuserbyid", "get", "user", "by", "id"]),
        ("user-by-id", ["userbyid", "user", "by", "id"]),
        ("parseHTTPResponse2", ["parsehttpresponse2", "pars", "http", "respons", "2"]),
        ("src/auth/login_view.py", ["src", "auth", "loginview", "login", "view", "py"]),
        ("TASK-0039 task-39", ["task39", "39", "task39", "39"]),
        ("数据库", ["数据", "据库", "库"]),
        ("API数据", ["api", "数据", "据"]),
        ("データ", ["デー", "ータ", "タ"]),
        ("한국어", ["한국", "국어", "어"]),
        ("Задачи задача", ["задач", "задач"]),
        ("Ünïcödé naïve", ["unicod", "naiv"]),
        ("don't user's", ["don", "user"]),
        ("０１２ ＡＢＣ", ["12", "abc"]),
        ("🚀 launch", ["🚀", "launch"]),
        ("", []),
        ("!? -- __", []),
    ],
)
def test_a_text_becomes_tokens(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_a_word_that_stemming_shortens_is_kept_as_written_once() -> None:
    assert analyse("Authentication authentication") == [
        "authent",
        "authent",
        f"{AS_WRITTEN}authentication",
    ]


@pytest.mark.parametrize(
    ("one", "other"), [("Straße", "STRASSE"), ("É", "e\u0301"), ("ﬁle", "FILE"), ("Ёлка", "елка")]
)
def test_folding_makes_one_of_what_people_read_as_one(one: str, other: str) -> None:
    assert fold(one) == fold(other)


def test_voiced_kana_stay_apart() -> None:
    assert fold("が") != fold("か")
