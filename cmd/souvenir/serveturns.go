package main

// checkTurns checks the flags that say how users share the processors and the memory for requests.
func (s *settings) checkTurns() error {
	switch {
	case *s.maxRunning < 0:
		return misused("--max-running is %d; give 1 or more, or 0 for one for each processor", *s.maxRunning)
	case *s.maxRunningPerUser < 0:
		return misused("--max-running-per-user is %d; give 1 or more, or 0 for one less than --max-running", *s.maxRunningPerUser)
	case *s.queuePerUser < 1:
		return misused("--queue-per-user is %d; give 1 or more", *s.queuePerUser)
	case *s.queueWait <= 0:
		return misused("--queue-wait is %s; give a duration such as 15s", *s.queueWait)
	case s.bodyMemory < 16<<20:
		return misused("--body-memory is %s; give at least 16MiB, which holds two requests of the largest size", s.bodyMemory.String())
	}
	return nil
}
