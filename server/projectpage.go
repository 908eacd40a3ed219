package server

import (
	"net/http"
)

func (s *Server) showProject(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	head, err := s.projectAt(r, c, "Overview")
	if err != nil {
		return nil, err
	}
	return page{template: "project", title: head.Name, data: struct{ Head *projectHead }{&head}}, nil
}
