package ucma

// FD is the number of a kernel device's file, for MIGRATE_ID.
func FD(d Device) (fd uint32, err error) {
	err = d.(*kernelDevice).raw.Control(func(n uintptr) { fd = uint32(n) })
	return fd, err
}
