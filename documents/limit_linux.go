package documents

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitProcess bounds the memory and the processor time of this process. Where that fails, its parent still ends it.
func limitProcess() {
	_ = unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: hardMemory, Max: hardMemory})
	seconds := uint64(2 * patience.Seconds())
	_ = unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds})
}

// endWithUs makes a process end when this one ends for any reason.
func endWithUs(process *exec.Cmd) {
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
