// Command profiles allocates, waits and lets goroutines wait, and writes the profiles of Go's
// runtime about that into the current directory.
package main

import (
	"log"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
)

type node struct {
	next *node
	data [1000]byte
}

var (
	kept  *node
	sink  []byte
	mutex sync.Mutex
)

//go:noinline
func keep(number int) {
	for range make([]struct{}, number) {
		kept = &node{next: kept}
	}
}

//go:noinline
func drop(number int) {
	for range make([]struct{}, number) {
		sink = make([]byte, 3000)
	}
}

//go:noinline
func contend(done *sync.WaitGroup) {
	defer done.Done()
	for range make([]struct{}, 20) {
		mutex.Lock()
		time.Sleep(time.Millisecond)
		mutex.Unlock()
	}
}

func write(name string) {
	file, err := os.Create(name + ".pb.gz")
	if err == nil {
		err = pprof.Lookup(name).WriteTo(file, 0)
	}
	if err != nil {
		log.Fatal(err)
	}
	if err = file.Close(); err != nil {
		log.Fatal(err)
	}
}

func main() {
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	keep(5_000)
	drop(20_000)
	var done sync.WaitGroup
	for range make([]struct{}, 4) {
		done.Add(1)
		go contend(&done)
	}
	done.Wait()
	closed := make(chan int)
	for range make([]struct{}, 7) {
		go func() { <-closed }()
	}
	// Objects in use are those at the end of the last collection.
	runtime.GC()
	for _, name := range []string{"heap", "allocs", "mutex", "block", "goroutine"} {
		write(name)
	}
	close(closed)
}
