package placement

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
)

// benchFloor has nodes of 8 devices, 32 to a rack, 16 racks to a room.
func benchFloor(nodes int) *Floor {
	f := NewFloor()
	for i := range nodes {
		n := testNode(i, 8)
		n.Name = fmt.Sprintf("gpu-%05d", i)
		n.Topology = []string{fmt.Sprintf("room%02d", i/512), fmt.Sprintf("rack%03d", i/32)}
		f.Put(n, nil)
	}
	f.Ready()
	return f
}

// thread measures the processor time of the benchmark's own thread, because a
// busy machine makes wall clock time useless. It excludes garbage collection on
// other threads.
func thread(b *testing.B) (stop func()) {
	runtime.LockOSThread()
	used := func() time.Duration {
		const ofThread = 1 // RUSAGE_THREAD
		var usage syscall.Rusage
		if err := syscall.Getrusage(ofThread, &usage); err != nil {
			b.Fatal(err)
		}
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	begun := used()
	return func() {
		b.ReportMetric(float64(used()-begun)/float64(b.N), "cpu-ns/op")
		runtime.UnlockOSThread()
	}
}

// BenchmarkGang places and releases one gang of whole nodes.
func BenchmarkGang(b *testing.B) {
	for _, nodes := range []int{1_000, 10_000} {
		f := benchFloor(nodes)
		for _, size := range []int{2, 16, 1_000, 10_000} {
			if size > nodes {
				continue
			}
			b.Run(fmt.Sprintf("nodes=%d/size=%d", nodes, size), func(b *testing.B) {
				need := NeedOf(testJob(size, 8), 0)
				stop := thread(b)
				for b.Loop() {
					placed, ok := f.Choose(&need, size, Options{})
					if !ok {
						b.Fatal("no room")
					}
					seats := f.SeatsOf(&need, placed)
					f.Take(seats)
					f.Give(seats)
				}
				stop()
			})
		}
	}
}

// BenchmarkSingles fills an empty floor with jobs of one node.
func BenchmarkSingles(b *testing.B) {
	for _, nodes := range []int{1_000, 10_000} {
		empty := benchFloor(nodes)
		f := empty.Clone()
		for _, devices := range []int{0, 1, 8} {
			b.Run(fmt.Sprintf("nodes=%d/devices=%d", nodes, devices), func(b *testing.B) {
				need := NeedOf(testJob(1, devices), 0)
				stop := thread(b)
				for b.Loop() {
					f.CopyFrom(empty)
					for range nodes {
						placed, ok := f.Choose(&need, 1, Options{})
						if !ok {
							b.Fatal("no room")
						}
						f.Occupy(&need, placed)
					}
				}
				stop()
			})
		}
	}
}

// BenchmarkChurn starts and ends single jobs on a floor that is nearly full, in
// the floor's own terms, as a forecast does.
func BenchmarkChurn(b *testing.B) {
	for _, nodes := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			f := benchFloor(nodes)
			needs := []Need{NeedOf(testJob(1, 1), 0), NeedOf(testJob(1, 2), 0), NeedOf(testJob(1, 4), 0), NeedOf(testJob(1, 8), 0)}
			var standing [][]Seat
			for i := 0; ; i++ {
				seats, ok := f.Pick(&needs[i%4], 1, Options{})
				if !ok {
					break
				}
				f.Take(seats)
				standing = append(standing, seats)
			}
			i := 0
			stop := thread(b)
			for b.Loop() {
				at := i * 7919 % len(standing)
				f.Give(standing[at])
				seats, ok := f.Pick(&needs[i%4], 1, Options{})
				if !ok {
					seats, _ = f.Pick(&needs[0], 1, Options{})
				}
				f.Take(seats)
				standing[at] = seats
				i++
			}
			stop()
		})
	}
}

// BenchmarkNoRoom asks a full floor.
func BenchmarkNoRoom(b *testing.B) {
	for _, nodes := range []int{1_000, 10_000} {
		f := benchFloor(nodes)
		whole := NeedOf(testJob(nodes, 8), 0)
		placed, _ := f.Choose(&whole, nodes, Options{})
		f.Occupy(&whole, placed)
		for _, size := range []int{1, 2, 100} {
			for _, devices := range []int{0, 1} {
				b.Run(fmt.Sprintf("nodes=%d/size=%d/devices=%d", nodes, size, devices), func(b *testing.B) {
					job := testJob(size, devices)
					job.Resources[0].CPU = 60
					need := NeedOf(job, 0)
					stop := thread(b)
					for b.Loop() {
						if _, ok := f.Choose(&need, size, Options{}); ok {
							b.Fatal("room on a full floor")
						}
					}
					stop()
				})
			}
		}
	}
}

// BenchmarkClone copies a floor, and copies into the memory of another.
func BenchmarkClone(b *testing.B) {
	for _, nodes := range []int{1_000, 10_000} {
		f := benchFloor(nodes)
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			stop := thread(b)
			for b.Loop() {
				f.Clone()
			}
			stop()
		})
		b.Run(fmt.Sprintf("nodes=%d/again", nodes), func(b *testing.B) {
			other := f.Clone()
			stop := thread(b)
			for b.Loop() {
				other.CopyFrom(f)
			}
			stop()
		})
	}
}

// BenchmarkPut brings what a node holds up to date, and adds nodes.
func BenchmarkPut(b *testing.B) {
	f := benchFloor(10_000)
	b.Run("usage", func(b *testing.B) {
		node, _ := f.Node("id-5000")
		usage := &structs.Usage{NodeID: node.ID, CPU: 8, Memory: structs.GiB, Allocs: 1, Devices: map[string]string{"GPU-5000-3": "a"}}
		stop := thread(b)
		for b.Loop() {
			f.Put(node, usage)
		}
		stop()
	})
	b.Run("join", func(b *testing.B) { // a node that comes and goes among 10,000
		node := testNode(20_000, 8)
		stop := thread(b)
		for b.Loop() {
			f.Put(node, nil)
			f.Ready()
			f.Remove(node.ID)
		}
		stop()
	})
	b.Run("10000-nodes", func(b *testing.B) {
		stop := thread(b)
		for b.Loop() {
			benchFloor(10_000)
		}
		stop()
	})
}

// BenchmarkAble counts what could, and explains what is short.
func BenchmarkAble(b *testing.B) {
	f := benchFloor(10_000)
	need := NeedOf(testJob(2, 8), 0)
	b.Run("able", func(b *testing.B) {
		stop := thread(b)
		for b.Loop() {
			f.Able(&need)
		}
		stop()
	})
	b.Run("shortage", func(b *testing.B) {
		stop := thread(b)
		for b.Loop() {
			f.Shortage(&need, Options{})
		}
		stop()
	})
	b.Run("first", func(b *testing.B) {
		stop := thread(b)
		for b.Loop() {
			need := NeedOf(testJob(2, 8), 0)
			f.Able(&need)
		}
		stop()
	})
}
