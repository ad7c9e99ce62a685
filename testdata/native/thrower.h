#pragma once
#include <string>

namespace thrower {

long maybe(long n);
long nested(long depth, long n);
long shielded(long n);

class Base {
public:
	virtual ~Base() = default;
	virtual long work(long n) = 0;
};

class Worker : public Base {
public:
	long work(long n) override;

private:
	long calls_ = 0;
};

} // namespace thrower
