package fakedaemon

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Call is a kind of request.
type Call string

// The calls the daemon answers.
const (
	CallPing              Call = "ping"
	CallVersion           Call = "version"
	CallInfo              Call = "info"
	CallImageList         Call = "image_list"
	CallImageInspect      Call = "image_inspect"
	CallImageLoad         Call = "image_load"
	CallImageRemove       Call = "image_remove"
	CallCreate            Call = "create"
	CallInspect           Call = "inspect"
	CallList              Call = "list"
	CallAttach            Call = "attach"
	CallWait              Call = "wait"
	CallStart             Call = "start"
	CallKill              Call = "kill"
	CallStop              Call = "stop"
	CallRestart           Call = "restart"
	CallPause             Call = "pause"
	CallUnpause           Call = "unpause"
	CallRename            Call = "rename"
	CallUpdate            Call = "update"
	CallRemove            Call = "remove"
	CallTop               Call = "top"
	CallEvents            Call = "events"
	CallExecCreate        Call = "exec_create"
	CallExecStart         Call = "exec_start"
	CallExecInspect       Call = "exec_inspect"
	CallCopyFrom          Call = "copy_from"
	CallCopyStat          Call = "copy_stat"
	CallCopyTo            Call = "copy_to"
	CallNetworkList       Call = "network_list"
	CallNetworkInspect    Call = "network_inspect"
	CallNetworkCreate     Call = "network_create"
	CallNetworkConnect    Call = "network_connect"
	CallNetworkDisconnect Call = "network_disconnect"
	CallNetworkRemove     Call = "network_remove"
)

// shape says what a call's reply is like, which decides the faults it can have.
type shape int

const (
	empty    shape = iota // a status and no body
	document              // one JSON document
	flow                  // a stream
)

type route struct {
	call   Call
	method string
	path   *regexp.Regexp // the group is the object's name or ID
	shape  shape
	target bool // the path names a container
	do     func(*Daemon, *exchange) reply
}

// routes is every call in the order of Calls. The first match answers.
var routes = []route{
	{CallPing, "GET HEAD", at(`/_ping`), empty, false, (*Daemon).ping},
	{CallVersion, "GET", at(`/version`), document, false, (*Daemon).version},
	{CallInfo, "GET", at(`/info`), document, false, (*Daemon).info},
	{CallImageList, "GET", at(`/images/json`), document, false, (*Daemon).imageList},
	{CallImageLoad, "POST", at(`/images/load`), flow, false, (*Daemon).imageLoad},
	{CallImageInspect, "GET", at(`/images/(.+)/json`), document, false, (*Daemon).imageInspect},
	{CallImageRemove, "DELETE", at(`/images/(.+)`), document, false, (*Daemon).imageRemove},
	{CallCreate, "POST", at(`/containers/create`), document, false, (*Daemon).create},
	{CallList, "GET", at(`/containers/json`), document, false, (*Daemon).list},
	{CallInspect, "GET", at(`/containers/([^/]+)/json`), document, true, (*Daemon).inspect},
	{CallAttach, "POST", at(`/containers/([^/]+)/attach`), flow, true, (*Daemon).attach},
	{CallWait, "POST", at(`/containers/([^/]+)/wait`), flow, true, (*Daemon).wait},
	{CallStart, "POST", at(`/containers/([^/]+)/start`), empty, true, (*Daemon).start},
	{CallKill, "POST", at(`/containers/([^/]+)/kill`), empty, true, (*Daemon).kill},
	{CallStop, "POST", at(`/containers/([^/]+)/stop`), empty, true, (*Daemon).stopCall},
	{CallRestart, "POST", at(`/containers/([^/]+)/restart`), empty, true, (*Daemon).restart},
	{CallPause, "POST", at(`/containers/([^/]+)/pause`), empty, true, (*Daemon).pause},
	{CallUnpause, "POST", at(`/containers/([^/]+)/unpause`), empty, true, (*Daemon).unpause},
	{CallRename, "POST", at(`/containers/([^/]+)/rename`), empty, true, (*Daemon).rename},
	{CallUpdate, "POST", at(`/containers/([^/]+)/update`), document, true, (*Daemon).update},
	{CallTop, "GET", at(`/containers/([^/]+)/top`), document, true, (*Daemon).top},
	{CallExecCreate, "POST", at(`/containers/([^/]+)/exec`), document, true, (*Daemon).execCreate},
	{CallCopyFrom, "GET", at(`/containers/([^/]+)/archive`), flow, true, (*Daemon).copyFrom},
	{CallCopyStat, "HEAD", at(`/containers/([^/]+)/archive`), empty, true, (*Daemon).copyStat},
	{CallCopyTo, "PUT", at(`/containers/([^/]+)/archive`), empty, true, (*Daemon).copyTo},
	{CallRemove, "DELETE", at(`/containers/([^/]+)`), empty, true, (*Daemon).remove},
	{CallEvents, "GET", at(`/events`), flow, false, (*Daemon).events},
	{CallExecStart, "POST", at(`/exec/([^/]+)/start`), flow, false, (*Daemon).execStart},
	{CallExecInspect, "GET", at(`/exec/([^/]+)/json`), document, false, (*Daemon).execInspect},
	{CallNetworkList, "GET", at(`/networks`), document, false, (*Daemon).networkList},
	{CallNetworkCreate, "POST", at(`/networks/create`), document, false, (*Daemon).networkCreate},
	{CallNetworkConnect, "POST", at(`/networks/([^/]+)/connect`), empty, false, (*Daemon).networkConnect},
	{CallNetworkDisconnect, "POST", at(`/networks/([^/]+)/disconnect`), empty, false, (*Daemon).networkDisconnect},
	{CallNetworkInspect, "GET", at(`/networks/([^/]+)`), document, false, (*Daemon).networkInspect},
	{CallNetworkRemove, "DELETE", at(`/networks/([^/]+)`), empty, false, (*Daemon).networkRemove},
}

func at(path string) *regexp.Regexp { return regexp.MustCompile(`^` + path + `/?$`) }

// Calls lists every call.
func Calls() []Call {
	var all []Call
	for _, r := range routes {
		all = append(all, r.call)
	}
	return all
}

func routeOf(c Call) *route {
	i := slices.IndexFunc(routes, func(r route) bool { return r.call == c })
	if i < 0 {
		return nil
	}
	return &routes[i]
}

func findRoute(r *http.Request, path string) (*route, string) {
	for i := range routes {
		if !slices.Contains(strings.Fields(routes[i].method), r.Method) {
			continue
		}
		if m := routes[i].path.FindStringSubmatch(path); m != nil {
			if len(m) > 1 {
				return &routes[i], m[1]
			}
			return &routes[i], ""
		}
	}
	return nil, ""
}
