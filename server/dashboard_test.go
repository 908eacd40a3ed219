package server_test

// furnishDashboard says with what the pages of the dashboard are opened that have something in their address, and gives
// them something to show. Each file of a page's tests adds its own here.
func (w *world) furnishDashboard(paths map[string]string) {
	for _, furnish := range []func(paths map[string]string){
		w.furnishOverview, w.furnishMemoryList, w.furnishMemory, w.furnishProjects, w.furnishFiles, w.furnishPictures,
		w.furnishUpkeep,
	} {
		furnish(paths)
	}
}
