package main

// checkTurns checks the flags for how users share processors and request memory.
func (s *settings) checkTurns() error {
	switch {
	case *s.maxRunning < 0:
		return misused("--max-running is %d; give 1 or more, or 0 for one per processor", *s.maxRunning)
	case *s.maxRunningPerUser < 0:
		return misused("--max-running-per-user is %d; give 1 or more, or 0 for one less than --max-running",
			*s.maxRunningPerUser)
	case *s.queuePerUser < 1:
		return misused("--queue-per-user is %d; give 1 or more", *s.queuePerUser)
	case *s.queueWait <= 0:
		return misused("--queue-wait is %s; give a duration such as 15s", *s.queueWait)
	case s.bodyMemory < 16<<20:
		return misused("--body-memory is %s; give at least 16MiB, which holds two requests of the largest size",
			s.bodyMemory.String())
	}
	return nil
}

// checkKept checks the flags for retention and quotas.
func (s *settings) checkKept() error {
	switch {
	case *s.purgeEvery < 0:
		return misused("--purge-every is %s; give a duration such as 24h, or 0 for never", *s.purgeEvery)
	case *s.keepRevisions < 0:
		return badKeepRevisions(*s.keepRevisions)
	case *s.keepActivity <= 0 || *s.keepActivity > mostKept:
		return misused("--keep-activity is %s; give a duration such as 720h, at most %s, or --no-activity to record no calls",
			*s.keepActivity, mostKept)
	case s.memoryQuota.Memories < 0 || s.memoryQuota.Revisions < 0 || s.memoryQuota.Items < 0:
		return misused("--memory-quota is %d, --revision-quota %d and --item-quota %d; give numbers, or 0 for no limit",
			s.memoryQuota.Memories, s.memoryQuota.Revisions, s.memoryQuota.Items)
	case *s.maxActivity <= 0:
		return misused("--max-activity is %d; give 1 or more, or --no-activity to record no calls", *s.maxActivity)
	}
	return checkTrashDays(*s.trashDays)
}
