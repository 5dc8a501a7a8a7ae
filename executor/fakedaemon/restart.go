package fakedaemon

import "os"

// cut ends the server and every connection.
func (d *Daemon) cut() {
	d.mu.Lock()
	server, served := d.server, d.served
	for c := range d.conns {
		c.Close()
	}
	for sub := range d.subscribers {
		sub.end()
	}
	d.mu.Unlock()
	server.Close() // closes the listener and all connections the server still owns
	<-served
	if d.shown != nil {
		d.shown.Close() // an error leaves nothing to do: the path goes next
	}
	os.Remove(d.Socket) // gone already is as good
}

// Restart ends the daemon's process and starts it again at the same path, with a new socket. Calls
// that were still to complete never do. Without live restore every running container has been
// killed, which nobody reports.
func (d *Daemon) Restart() error {
	d.mu.Lock()
	d.late = nil
	for _, c := range d.containers {
		if c.running && !d.engine.LiveRestore {
			d.ended(c, 137)
			c.loose()
		}
	}
	d.log = nil
	d.mu.Unlock()
	d.cut()
	return d.listen()
}

// Replace puts another daemon behind the socket: another engine ID and, if empty, no container or
// image. The former one's containers are hidden but run on. Restore brings it back.
func (d *Daemon) Replace(empty bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.replace(empty)
}

func (d *Daemon) replace(empty bool) {
	d.former = append(d.former, formerly{d.engine, d.world})
	d.engine = d.engine.With()
	d.engine.ID = d.newEngineID()
	if empty {
		d.world = d.newWorld()
	}
}

// Restore brings back the daemon that the last Replace hid.
func (d *Daemon) Restore() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.former); n > 0 {
		d.engine, d.world = d.former[n-1].engine, d.former[n-1].world
		d.former = d.former[:n-1]
	}
}

// Change changes what the daemon says about itself from now on.
func (d *Daemon) Change(changes ...func(*Engine)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.engine = d.engine.With(changes...)
}

// Engine is what the daemon says about itself now.
func (d *Daemon) Engine() Engine {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.engine.With()
}
