package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// colleague is the user who is invited to the projects of the load.
const colleague = "ben"

// invite takes the next step with the colleague in the client's project: it invites, lets the colleague accept, takes
// rights away, or removes. The text of a member is their status and role.
func (c *client) invite(p *server) {
	project := c.pick(rule, there)
	o := c.pick(member, func(*object) bool { return true })
	if project == nil || o == nil {
		return
	}
	members := p.url + "/api/projects/" + o.project + "/members"
	next := state{There: true}
	switch n := c.random.IntN(3); {
	case !o.now.There:
		next.Text = [...]string{"invited reader", "invited writer"}[n%2]
		c.asMember(p, o, next, http.MethodPost, members, map[string]string{"user": colleague, "role": next.Text[8:]})
	case n == 0:
		c.asMember(p, o, state{}, http.MethodDelete, members+"/"+colleague, nil)
	case o.now.Text[:7] == "invited":
		c.accept(p, o)
	case o.now.Text == "active writer":
		next.Text = "active reader"
		c.asMember(p, o, next, http.MethodPatch, members+"/"+colleague, map[string]string{"role": "reader"})
	}
}

func (c *client) asMember(p *server, o *object, next state, method, url string, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // everything in it can be marshalled
	}
	status, answer, err := c.call.send(context.Background(), method, url, "application/json", text, nil)
	c.settle(p, o, next, method+" member", status, answer, err)
}

// accept finds the invitation as the colleague, and accepts it.
func (c *client) accept(p *server, o *object) {
	var pending struct {
		Invitations []struct {
			ID      string
			Project string `json:"project_id"`
		}
	}
	status, text, err := c.load.colleague.send(context.Background(), http.MethodGet, p.url+"/api/project-invitations", "",
		nil, &pending)
	if !c.asked(p, "invitations", status, text, err) {
		return
	}
	for _, one := range pending.Invitations {
		if one.Project == o.project {
			next := state{There: true, Text: "active" + o.now.Text[7:]}
			status, text, err = c.load.colleague.send(context.Background(), http.MethodPost,
				p.url+"/api/project-invitations/"+one.ID+"/accept", "", nil, nil)
			c.settle(p, o, next, "accept", status, text, err)
			return
		}
	}
	c.load.fault("the invitation of %s to %s is not there: %.400s", colleague, o.project, text)
}

// listMembers records the colleague's membership of each project.
func (l *load) listMembers(url string, f *found) error {
	for _, c := range l.clients {
		for mark, o := range c.objects {
			if o.kind != member {
				continue
			}
			var all struct {
				Members []struct{ Name, Role string }
				Invited []struct{ User, Role string }
			}
			status, text, err := l.call.send(context.Background(), http.MethodGet, url+"/api/projects/"+o.project+"/members",
				"", nil, &all)
			if status == http.StatusNotFound && !o.now.There {
				continue // nothing was stored in the project yet
			}
			if err != nil || status != http.StatusOK {
				return fmt.Errorf("the members of %s: status %d, %.400s, %w", o.project, status, text, err)
			}
			for _, one := range all.Members {
				if one.Name == colleague {
					if err := f.note(mark, "", state{There: true, Text: "active " + one.Role}); err != nil {
						return err
					}
				}
			}
			for _, one := range all.Invited {
				if err := f.note(mark, "", state{There: true, Text: "invited " + one.Role}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
