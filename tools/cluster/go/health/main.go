// Command health says of one Kubernetes object what Flux and Argo CD would: Flux by the library kstatus, Argo CD by a
// health script in Lua, run as Argo CD runs it. The object comes on the standard input as JSON, the script's path is
// the only argument, and the answers go to the standard output as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type verdict struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: health SCRIPT.lua < OBJECT.json")
	}
	script, err := os.ReadFile(os.Args[1])
	if err != nil {
		return err
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(text); err != nil {
		return err
	}
	argo, err := byScript(string(script), object.Object)
	if err != nil {
		return err
	}
	flux, err := status.Compute(&object)
	if err != nil {
		return err
	}
	answers := map[string]verdict{"argo": argo, "flux": {flux.Status.String(), flux.Message}}
	return json.NewEncoder(os.Stdout).Encode(answers)
}

// byScript runs a script as Argo CD does: the object is the global obj, the result a table of status and message, and
// of Lua's libraries there are only those that touch nothing outside.
func byScript(script string, object map[string]any) (verdict, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString,
	} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return verdict{}, err
		}
	}
	state.SetGlobal("obj", value(state, object))
	if err := state.DoString(script); err != nil {
		return verdict{}, err
	}
	found, isTable := state.Get(-1).(*lua.LTable)
	if !isTable {
		return verdict{}, fmt.Errorf("the script returns no table")
	}
	return verdict{found.RawGetString("status").String(), found.RawGetString("message").String()}, nil
}

func value(state *lua.LState, from any) lua.LValue {
	switch typed := from.(type) {
	case bool:
		return lua.LBool(typed)
	case int64:
		return lua.LNumber(typed)
	case float64:
		return lua.LNumber(typed)
	case string:
		return lua.LString(typed)
	case []any:
		table := state.CreateTable(len(typed), 0)
		for _, item := range typed {
			table.Append(value(state, item))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(typed))
		for key, item := range typed {
			table.RawSetString(key, value(state, item))
		}
		return table
	default:
		return lua.LNil
	}
}
