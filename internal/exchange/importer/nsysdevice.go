package importer

import (
	"context"
	"database/sql"
	"strconv"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// What CUPTI calls the kinds of copies (CUpti_ActivityMemcpyKind).
var copyKinds = map[int64][2]string{
	1: {"Memcpy HtoD", "host_to_device"}, 2: {"Memcpy DtoH", "device_to_host"}, 8: {"Memcpy DtoD", "device_to_device"},
	9: {"Memcpy HtoH", "host_to_host"}, 10: {"Memcpy PtoP", "device_to_device"},
}

// on says where a device's row ran.
func (r *row) on(process, device, contextID, stream, correlation sql.NullInt64) {
	r.device = true
	if process.Valid {
		r.pid, _ = split(process.Int64)
	}
	if correlation.Valid {
		r.correlation = key(r.pid, correlation.Int64)
	}
	if device.Valid {
		id := int32(device.Int64)
		r.detail.DeviceID = &id
	}
	if contextID.Valid {
		r.detail.Context = &contextID.Int64
	}
	if stream.Valid && stream.Int64 >= 0 {
		r.detail.Stream = &stream.Int64
	}
}

func (n *nsys) kernels(ctx context.Context, table string, h handler) error {
	columns := n.columns(table, "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId", "demangledName", "shortName",
		"mangledName",
		"gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "dynamicSharedMemory")
	return n.each(ctx, "SELECT start, "+columns+" FROM "+table, func(rows *sql.Rows) error {
		var start int64
		var end, process, device, contextID, stream, correlation, demangled, short, mangled, shared sql.NullInt64
		var size [6]sql.NullInt64
		if err := rows.Scan(&start, &end, &process, &device, &contextID, &stream, &correlation, &demangled, &short, &mangled,
			&size[0], &size[1], &size[2], &size[3], &size[4], &size[5], &shared); err != nil {
			return err
		}
		name := n.strings[demangled.Int64]
		if name == "" {
			name = n.strings[short.Int64]
		}
		if name == "" {
			name = n.strings[mangled.Int64]
		}
		r := n.begin(event.Call{Layer: "device", Category: n.kinds.category(name), Name: name}, start, end)
		r.on(process, device, contextID, stream, correlation)
		if mangled.Valid {
			r.detail.Symbol = n.strings[mangled.Int64]
		}
		if size[0].Valid && size[3].Valid {
			grid, block := [3]int64{}, [3]int64{}
			for i := range 3 {
				grid[i], block[i] = size[i].Int64, size[i+3].Int64
			}
			r.detail.Grid, r.detail.Block = &grid, &block
			r.detail.Work = &[3]int64{grid[0] * block[0], grid[1] * block[1], grid[2] * block[2]}
		}
		if shared.Valid {
			r.detail.SharedBytes = &shared.Int64
		}
		return h.row(r)
	})
}

// graphs reads whole launches of graphs: where Nsight was told to trace graphs and
// not their nodes, they are all that there is of the work.
func (n *nsys) graphs(ctx context.Context, table string, h handler) error {
	columns := n.columns(table, "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId", "graphId")
	return n.each(ctx, "SELECT start, "+columns+" FROM "+table, func(rows *sql.Rows) error {
		var start int64
		var end, process, device, contextID, stream, correlation, graph sql.NullInt64
		if err := rows.Scan(&start, &end, &process, &device, &contextID, &stream, &correlation, &graph); err != nil {
			return err
		}
		name := "CUDA graph"
		if graph.Valid {
			name += " " + strconv.FormatInt(graph.Int64, 10)
		}
		r := n.begin(event.Call{Layer: "device", Category: deviceKernel, Name: name}, start, end)
		r.on(process, device, contextID, stream, correlation)
		return h.row(r)
	})
}

// copies reads copies and sets, which differ by copyKind.
func (n *nsys) copies(ctx context.Context, table string, h handler) error {
	columns := n.columns(table, "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId", "bytes", "copyKind")
	return n.each(ctx, "SELECT start, "+columns+" FROM "+table, func(rows *sql.Rows) error {
		var start int64
		var end, process, device, contextID, stream, correlation, bytes, kind sql.NullInt64
		if err := rows.Scan(&start, &end, &process, &device, &contextID, &stream, &correlation, &bytes, &kind); err != nil {
			return err
		}
		call, way := event.Call{Layer: "device", Category: deviceSet, Name: "Memset"}, ""
		if kind.Valid {
			names := copyKinds[kind.Int64]
			call.Category, call.Name, way = deviceCopy, names[0], names[1]
			if call.Name == "" {
				call.Name = "Memcpy"
			}
		}
		r := n.begin(call, start, end)
		r.on(process, device, contextID, stream, correlation)
		r.detail.Direction = way
		if bytes.Valid {
			r.detail.Bytes = &bytes.Int64
		}
		return h.row(r)
	})
}

// What CUPTI calls the kinds of waits (CUpti_ActivitySynchronizationType), in
// torch.profiler's words.
var waitKinds = map[int64]string{1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}

func (n *nsys) waits(ctx context.Context, table string, h handler) error {
	columns := n.columns(table, "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId", "syncType")
	return n.each(ctx, "SELECT start, "+columns+" FROM "+table, func(rows *sql.Rows) error {
		var start int64
		var end, process, device, contextID, stream, correlation, kind sql.NullInt64
		if err := rows.Scan(&start, &end, &process, &device, &contextID, &stream, &correlation, &kind); err != nil {
			return err
		}
		name := waitKinds[kind.Int64]
		if name == "" {
			name = "Sync"
		}
		r := n.begin(event.Call{Layer: "device", Category: deviceSync, Name: name}, start, end)
		r.on(process, device, contextID, stream, correlation)
		return h.row(r)
	})
}
