package param_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/peltonq/pelton/jobs/flow/internal/param"
)

func own(values map[string]string) param.Scope {
	return param.Scope{From: "own", Values: values, Secrets: true}
}

// References stay, marked, through other parameters too; nobody can write one beforehand, not even in pieces.
func TestSecretsStayReferences(t *testing.T) {
	t.Parallel()
	scopes := param.Scopes{
		{From: "the run", Values: map[string]string{"open": "${sec", "close": "ret.FORGED}", "colon": "ret.FORGED:}"}},
		{From: "data", Values: map[string]string{"item": "${secret.DATA}", "secret.PW": "mine"}, Data: true},
		own(map[string]string{
			"command": "mysql -p${secret.PW} ${pw}/${pw} ${item} ${open}${close} $(${n}+1) ${open}${colon}", "pw": "x${secret.OTHER}", "n": "2", "plain": "a",
		}),
	}
	values, mark, err := param.ResolveMarked(scopes)
	if err != nil {
		t.Fatal(err)
	}
	filled := mark.Fill(values["command"], func(name, before string) string {
		if !strings.HasPrefix(values["command"], before) {
			t.Errorf("before %s stands %q", name, before)
		}
		return "<" + name + ">"
	})
	if want := "mysql -p<PW> x<OTHER>/x<OTHER> ${secret.DATA} ${secret.FORGED} 3 ${secret.FORGED:}"; filled != want {
		t.Errorf("got %s, want %s", filled, want)
	}
	if names := mark.Names(values["command"], values["pw"]); !slices.Equal(names, []string{"OTHER", "PW"}) {
		t.Errorf("names: %v", names)
	}
	if _, again, _ := param.ResolveMarked(scopes); again == mark || len(mark) != 16 {
		t.Errorf("marks are %q and %q", mark, again)
	}
	without, err := param.Resolve(scopes)
	if err != nil || without["plain"] != "a" || len(without) != 6 || without["pw"] != "" || without["secret.PW"] != "" {
		t.Errorf("without secrets: %v, %v", without, err)
	}
}

func TestWhoMayNotUseSecrets(t *testing.T) {
	t.Parallel()
	project := own(map[string]string{"pw": "${secret.PW}", "command": "echo ${text}", "text": ""})
	for text, want := range map[string]string{"${secret.A}": "", "a ${pw}": "", "${empty}": "x"} {
		_, err := param.Resolve(param.Scopes{project, {From: "the run", Values: map[string]string{"text": text, "empty": ""}}})
		closed, is := errors.AsType[*param.ClosedError](err)
		if want == "" && (!is || closed.Name != "text" || closed.From != "the run" || strings.Count(err.Error(), "\n") != 0) || want != "" && err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := param.ResolveText(param.Scopes{project}, "list", "a@${pw}"); err == nil || !strings.Contains(err.Error(), "list: a secret cannot be used here") {
		t.Errorf("a text elsewhere: %v", err)
	}
	for _, bad := range []string{"${secret.}", "${secret.1}", "${secret.a.b}"} {
		if _, err := param.Resolve(param.Scopes{own(map[string]string{"a": bad})}); err == nil || !strings.Contains(err.Error(), "letters, digits and _") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
